"""spec L1, step 2: where a sentence ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.text.sentences import split_sentences
from tests.rows import for_each_row


@for_each_row(
    "parts",
    [
        ["It rained. ", "We stayed! ", "Why? ", "Nobody knew."],
        ["He paid 3.50 euros. ", "Then he left."],
        ["Dr. Smith met J. R. Miller at 5 p.m. at St. Mary's. ", "They talked."],
        ["Am 3. Oktober war frei. ", "Alle schliefen."],
        ["“Go!” ", "She went (at once.) ", "Nobody saw."],
        ["it was late. and dark."],
        ["昨日は雨だった。", "家にいた！", "「寒いね。」", "と言った。"],
        ["今天很冷。", "我们在家。"],
        ["Это было давно. ", "Все забыли."],
        ["वह आया। ", "वह गया।"],
        ["هل أنت هنا؟ ", "نعم."],
        ["Wait… ", "What?! ", "No."],
        ["He owns node.js and example.com today."],
        ["no end"],
        ["Dr. Smith met J. Doe."],
        ["He met J. Doe at 5 p.m. ", "They talked."],
        ["The U.S. economy grew by 2.5 percent. ", "Mr. Jones was glad."],
        ["He said no. ", "Then he left."],
        ["See fig. 3 and No. 5 of it. ", "It helps."],
        ["Das kostet z. B. 5 Euro, d. h. wenig. ", "Dr. Meier weiß es."],
        ["M. Dupont est arrivé. ", "Il a parlé à Mme. Durand."],
        ["El Sr. López llegó. ", "¿Dónde está? ", "¡Aquí!"],
        ["Il dott. Rossi abita qui. ", "Lo conosco."],
        ["O Sr. Silva chegou. ", "Ele falou com a Dra. Costa."],
        ["Dhr. Jansen kwam langs. ", "Hij bleef tot 5 uur."],
        ["Он родился в 1990 г. в Москве. ", "Все забыли."],
        ["어제 비가 왔다. ", "집에 있었어요."],
        ["so....)it goes... ", "And on."],
        [],
    ],
)
def test_sentences_end_where_a_reader_would_say(parts: list[str]) -> None:
    assert split_sentences("".join(parts)) == parts


@given(st.text(st.sampled_from("aB1 .!?。」”)\n…Dr")))
def test_sentences_join_back_and_none_is_blank(text: str) -> None:
    found = split_sentences(text)
    assert "".join(found) == text
    assert all(found)
