"""Of a long text the sentences that tell most, for an offer or a list that has no room for the whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from madeleine.memory.rules.storing.chunk_scoring import chunk_salience
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.sentences import split_sentences

GAP = " … "
"""Where sentences are left out."""
FIRST_PERSON_WEIGHT, QUESTION_PENALTY = 0.3, 0.25
"""What somebody tells of themselves weighs as much as a name; what is asked tells less than what is told."""
MIN_SENTENCE_CHARS = 12
"""A shorter one, such as the number of a list's item, is left out."""


MAX_READ_CHARS = 4_000
"""Of a longer text no more is read, unless more is to be shown: a night shows thousands, and remembers them."""


def most_telling_sentences(text: str, limit: int) -> str:
    """The whole text if it has at most `limit` characters; else its most telling sentences, in their order, as many as
    fit, with `…` where something is left out.

    Names, numbers, dates, preferences (`chunk_salience`) and what is told in the first person tell; of equals the
    longest. Questions that tell nothing are left out. Of a sentence that alone is too long the end stays, where what is
    new stands, or its beginning if it tells nothing of the kind. Of a very long text only the beginning is read.
    """
    if len(text) <= limit:
        return text
    read = text[: max(MAX_READ_CHARS, 2 * limit)]
    return _most_telling_sentences(read, limit, is_beginning=len(read) < len(text))


@lru_cache(maxsize=4_000)
def _most_telling_sentences(text: str, limit: int, *, is_beginning: bool) -> str:
    """`is_beginning`: more stands behind `text`, which is left out."""
    sentences = [stripped for sentence in split_sentences(text) if (stripped := sentence.strip())] or [text]
    if is_beginning:
        sentences.append("")
    scores = {at: _telling(one) for at, one in enumerate(sentences) if len(one) >= MIN_SENTENCE_CHARS} or {0: 0.0}
    best = sorted(scores, key=lambda at: (-scores[at], -len(sentences[at]), at))
    chosen: list[int] = []
    room = limit - len(GAP)
    for at in best:
        if len(sentences[at]) + len(GAP) <= room and (scores[at] >= 0 or not chosen):
            chosen.append(at)
            room -= len(sentences[at]) + len(GAP)
    if best[0] not in chosen:
        return _excerpt_of_overlong_sentence(sentences, best[0], limit, keep_end=scores[best[0]] > 0)
    return "".join(_with_gaps(sentences, sorted(chosen)))


def _telling(sentence: str) -> float:
    reading = AnalysedText(sentence)
    salience = chunk_salience(reading, rarity=0.0)
    if reading.is_question:
        return salience - QUESTION_PENALTY
    return salience + FIRST_PERSON_WEIGHT * reading.first_person_degree


def _with_gaps(sentences: list[str], chosen: list[int]) -> Iterator[str]:
    before = -1
    for at in chosen:
        if at > before + 1:
            yield GAP.lstrip() if before < 0 else GAP
        elif before >= 0:
            yield " "
        yield sentences[at]
        before = at
    if before < len(sentences) - 1:
        yield GAP.rstrip()


def _excerpt_of_overlong_sentence(sentences: list[str], at: int, limit: int, *, keep_end: bool) -> str:
    """Of one that is too long to stand among others: its end or its beginning, in whole words where it has words."""
    sentence, room = sentences[at], limit - 2 * len(GAP)
    piece, is_cut = sentence, len(sentence) > room
    if is_cut:
        piece = sentence[-room:].partition(" ")[2] if keep_end else sentence[:room].rpartition(" ")[0]
        if len(piece) < room // 2:
            piece = sentence[-room:] if keep_end else sentence[:room]
    before = GAP.lstrip() if at or (is_cut and keep_end) else ""
    after = GAP.rstrip() if at < len(sentences) - 1 or (is_cut and not keep_end) else ""
    return before + piece + after
