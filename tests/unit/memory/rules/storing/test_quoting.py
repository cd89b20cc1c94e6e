"""spec T6: what a text only quotes from memory."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.rules.prompting import render_memories_as_shuffled_fragments, render_memory_block
from madeleine.memory.rules.storing.quoting import (
    StatementForRepetitionCheck,
    person_restates_known_text,
    repeats_known_text,
    share_of_words_in_source,
    split_into_sentences_and_lines,
    statements_of_memory,
    without_quotes_from_memory,
    without_recalled_text,
)
from madeleine.tools.replies import brief_memory_as_json, detailed_memory_as_json, memory_without_text_as_json
from tests.doubles import a_memory
from tests.rows import for_each_row

LYON = a_memory("Ada moved to Lyon in May with her two cats.", feeling="torn, and glad of it", when=("2026-05-02",))
RAMEN = a_memory("We shared ramen at the counter. It rained all night.", lesson="Bring an umbrella to the counter.")
KENTA = a_memory("健太は五月に猫二匹と京都へ引っ越した。")
TOLD = [one for memory in (LYON, RAMEN, KENTA) for one in statements_of_memory(memory)]


@for_each_row(
    ("text", "left"),
    [
        ("<recall>Ada moved to Lyon / torn</recall>", ""),
        ("Before. <recall>a / b</recall> After.", "Before.  After."),
        ("<RECALL>\na\n\nb\n</ recall >\nI live in Rome now.", "I live in Rome now."),
        ("<memory>\n[SEMANTIC] one\n[EPISODIC] 2024-01-20: two\n</memory> and you?", "and you?"),
        ('<memory source="x">one</memory>', ""),
        ("[EPISODIC] 2024-01-20: Discussed the migration.\nIt went well.", "It went well."),
        ("- [PROCEDURAL] Be brief.", ""),
        ("<recall>never closed\nI live in Rome now.", "I live in Rome now."),
        ("<recall>a</recall><memory>b</memory>c", "c"),
        ("<recalled>I live in Rome</recalled>", "<recalled>I live in Rome</recalled>"),
        ("a < recall that I told you", "a < recall that I told you"),
        ("plain", "plain"),
    ],
)
def test_what_stands_between_the_tags_of_recalled_text_is_taken_out(text: str, left: str) -> None:
    assert without_recalled_text(text) == left


def test_answers_of_our_own_tools_are_known_wherever_they_stand() -> None:
    recalled = json.dumps({"memories": [brief_memory_as_json(LYON, 0.5)]})
    assert without_recalled_text(f"The tool said: {recalled} What now?") == "The tool said:  What now?"
    assert without_recalled_text(json.dumps({"memories": [detailed_memory_as_json(LYON, {})]}, indent=2)) == ""
    assert (
        without_recalled_text(
            json.dumps({"hits": [{"source": "chat", "text": "Lyon", "id": "1", "when": "2026-05-02"}]})
        )
        == ""
    )
    assert without_recalled_text(json.dumps({"hits": [{"source": "chat", "snippet": "Lyon", "id": "1"}]})) == ""
    numbered = replace(LYON, number=12)
    near = {"memories": [], "near": [brief_memory_as_json(numbered)], "unknown_words": ["cats"]}
    assert without_recalled_text(json.dumps(near)) == ""
    block = {"prompt": render_memory_block([numbered]), "sources": [memory_without_text_as_json(numbered)]}
    assert without_recalled_text(json.dumps(block)) == ""


def test_other_json_is_left_as_it_is() -> None:
    other = '{"name": "Ada", "lives": ["Lyon", {"id": 1}]}'
    assert without_recalled_text(f"see {other}") == f"see {other}"


@given(st.text(max_size=300))
def test_taking_marks_out_twice_is_taking_them_out_once_where_none_are_made_by_it(text: str) -> None:
    once = without_recalled_text(text)
    assert len(once) <= len(text)
    if "<" not in text and "{" not in text and "[" not in text:
        assert once == text.strip()


@given(st.lists(st.sampled_from([LYON, RAMEN, KENTA]), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_nothing_is_left_of_what_recall_shows_in_any_format(memories: list[object], chance: random.Random) -> None:
    """Tagged or not, whoever says it."""
    shown = render_memories_as_shuffled_fragments(memories, chance)  # type: ignore[arg-type]
    assert without_recalled_text(shown) == ""
    assert without_recalled_text(render_memory_block(memories)) == ""  # type: ignore[arg-type]
    bare = shown.removeprefix("<recall>").removesuffix("</recall>")
    assert without_quotes_from_memory(bare, TOLD, by_assistant=True) == ""
    if len(set(map(id, memories))) > 1:
        assert without_quotes_from_memory(bare, TOLD, by_assistant=False) == ""


@for_each_row(
    "text",
    [
        "Ada moved to Lyon in May with her two cats.",
        "I remember that you moved to Lyon in May with your two cats.",
        "As you told me earlier, you moved to Lyon with two cats!",
        "You moved to Lyon in May, right?",
        "- You and Ada moved to Lyon in May (with the two cats)",
        "We shared ramen at the counter, and it rained all night.",
        "You noted: bring an umbrella to the counter.",
        "健太さんは五月に猫二匹と京都へ引っ越したと覚えています。",
    ],
)
def test_what_the_assistant_says_of_a_memory_is_a_quote_however_it_is_put(text: str) -> None:
    assert without_quotes_from_memory(text, TOLD, by_assistant=True) == ""


@for_each_row(
    "text",
    [
        "Ada moved to Paris in May with her two cats.",
        "Ada moved to Lyon in June with her two cats.",
        "Ada moved to Lyon in May with her three cats.",
        "Ada did not move to Lyon in May with her two cats.",
        "Bob moved to Lyon in May with her two cats.",
        "You moved to Lyon in May and found work at the opera there.",
        "You moved to Lyon on 2026-05-03 with two cats.",
        "健太は五月に猫三匹と京都へ引っ越した。",
        "健太は五月に猫二匹と大阪へ引っ越した。",
        "We shared ramen.",
        "Yes.",
    ],
)
def test_a_fact_that_differs_is_no_quote(text: str) -> None:
    """A number, a name, a day, a negation, or more than was told."""
    assert without_quotes_from_memory(text, TOLD, by_assistant=True) == text
    assert not person_restates_known_text(text, TOLD)


def test_only_the_quote_is_taken_out_of_what_is_said() -> None:
    said = "I remember that you moved to Lyon in May with your two cats. How is the opera treating you?"
    assert without_quotes_from_memory(said, TOLD, by_assistant=True) == "How is the opera treating you?"


def test_a_person_may_say_a_thing_again() -> None:
    """spec T6: it reinforces; only where there is more than one it is what a recall has shown."""
    again = "Ada moved to Lyon in May with her two cats."
    assert without_quotes_from_memory(again, TOLD, by_assistant=False) == again
    both = f"{again} We shared ramen at the counter."
    assert without_quotes_from_memory(both, TOLD, by_assistant=False) == ""
    assert without_quotes_from_memory(f"{both} I found a job.", TOLD, by_assistant=False) == "I found a job."
    assert without_quotes_from_memory("I remember that you moved to Lyon in May.", TOLD, by_assistant=False) == ""


@for_each_row(
    ("known", "said"),
    [
        ("Mia trains Ben on the big crane.", "Ben trains Mia on the big crane."),
        ("The team moved from npm to pnpm.", "The team moved from pnpm to npm."),
        ("健太は京都から大阪へ引っ越した。", "健太は大阪から京都へ引っ越した。"),
    ],
)
def test_the_same_words_in_another_order_are_news(known: str, said: str) -> None:
    """Ruling 13"""
    assert person_restates_known_text(known, [StatementForRepetitionCheck(known)])
    assert not person_restates_known_text(said, [StatementForRepetitionCheck(known)])


def test_an_essence_that_says_no_more_than_a_memory_restates_it() -> None:
    assert person_restates_known_text("Ada moved to Lyon with two cats.", TOLD)
    assert person_restates_known_text("Ada moved to Lyon in May. We shared ramen at the counter.", TOLD)


def test_one_who_is_not_named_may_be_somebody_else() -> None:
    """The assistant speaks to whom it knows; of what a person says nobody knows whom it is about."""
    told = [StatementForRepetitionCheck("Ada likes ramen with extra garlic.")]
    assert repeats_known_text("You like ramen with extra garlic.", told)
    assert not person_restates_known_text("The user likes ramen with extra garlic.", told)
    assert person_restates_known_text("Ada likes ramen with garlic.", told)


def test_the_names_of_those_who_speak_are_no_news() -> None:
    told = [StatementForRepetitionCheck("Moved to Lyon in May with two cats.")]
    assert not person_restates_known_text("Ada moved to Lyon in May with two cats.", told)
    assert person_restates_known_text("Ada moved to Lyon in May with two cats.", told, ["Ada"])


@for_each_row(
    ("text", "source", "share"),
    [
        ("Ada moved to Lyon", "i moved to lyon, says ada", 1.0),
        ("Ada moved to Lyon", "where do I live?", 0.0),
        ("", "x", 0.0),
    ],
)
def test_the_share_of_words_that_somebody_has_said(text: str, source: str, share: float) -> None:
    assert share_of_words_in_source(text, source) == share


@given(st.text(max_size=200), st.booleans())
def test_nothing_is_added_to_a_text(text: str, by_assistant: bool) -> None:
    left = without_quotes_from_memory(text, TOLD, by_assistant=by_assistant)
    assert set(left) <= {*text, "\n"}
    assert without_quotes_from_memory(text, [], by_assistant=by_assistant) == without_recalled_text(text)


@for_each_row("text", ["a" + " " * 32_000 + "b", ". / " * 8_000, "." * 32_000 + "x", " /" * 16_000])
def test_cutting_into_sentences_takes_time_by_the_length_and_not_by_its_square(text: str) -> None:
    """Four times the text: 4 times as long, and not 16."""

    def seconds(part: str) -> float:
        def once() -> float:
            begun = time.process_time()
            split_into_sentences_and_lines(part)
            return time.process_time() - begun

        return min(once() for _ in range(3))

    assert seconds(text) < 9 * seconds(text[: len(text) // 4]) + 0.02
