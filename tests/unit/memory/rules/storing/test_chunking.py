"""spec L1, step 2: chunks of 50 to 300 tokens, cut where meaning ends; none of the text is lost."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from madeleine.memory.rules.storing.chunking import (
    ChunkTokenLimits,
    TextAtom,
    join_tiny_atoms,
    partition_atoms_into_chunks,
    split_into_chunks,
)
from madeleine.memory.text.normalization import normalize_unicode_and_whitespace
from tests.rows import for_each_row

SMALL = ChunkTokenLimits(least=5, most=12)


async def by_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


async def by_signs(texts: Sequence[str]) -> list[int]:
    return [len(re.sub(r"\s", "", text)) for text in texts]


def cut(text: str, limits: ChunkTokenLimits = SMALL) -> list[str]:
    chunks = asyncio.run(split_into_chunks(text, by_words, limits))
    assert "".join(chunks) == text
    return [chunk.strip() for chunk in chunks]


def words(number: int, start: str = "w") -> str:
    return " ".join(f"{start}{n}" for n in range(number))


# --- by hand ----------------------------------------------------------------------------------------------------


def test_a_text_below_the_least_length_is_one_chunk() -> None:
    assert cut("Two words.") == ["Two words."]
    assert cut("One.\n\nTwo.") == ["One.\n\nTwo."]
    assert cut("") == []


def test_paragraphs_within_the_limits_are_the_chunks() -> None:
    assert cut(f"{words(6)}\n\n{words(9)}\n\n{words(5)}") == [words(6), words(9), words(5)]


def test_a_short_paragraph_joins_the_neighbour_that_leaves_the_chunks_most_alike() -> None:
    """6 + 2 and 8, not 6 and 2 + 8."""
    assert cut(f"{words(6)}\n\nso short\n\n{words(8)}") == [f"{words(6)}\n\nso short", words(8)]


def test_a_long_paragraph_is_cut_at_the_end_of_a_sentence_into_equal_parts() -> None:
    first, second, third = (f"A{words(4, start)}." for start in "xyz")
    long = ChunkTokenLimits(least=3, most=9)
    fourth = f"B{words(4)}."
    assert cut(f"{first} {second} {third} {fourth}", long) == [f"{first} {second}", f"{third} {fourth}"]


def test_chinese_is_cut_at_its_full_stops() -> None:
    text = "今天下雨了。我们在家里看书。明天会是晴天吗？我们去公园！"
    chunks = asyncio.run(split_into_chunks(text, by_signs, ChunkTokenLimits(least=5, most=15)))
    assert chunks == ["今天下雨了。我们在家里看书。", "明天会是晴天吗？我们去公园！"]


def test_a_list_is_cut_between_its_items_only() -> None:
    items = [f"- item {n}. It has. Two more" for n in range(4)]
    assert cut("\n".join(items), ChunkTokenLimits(least=5, most=20)) == ["\n".join(items[:2]), "\n".join(items[2:])]


def test_a_block_of_code_within_the_limits_stays_whole_whatever_is_in_it() -> None:
    code = "```py\na = 1. \n\nB = f(a). C\n```"
    assert cut(f"{words(8)}\n\n{code}\n\n{words(8)}") == [words(8), code, words(8)]


def test_a_long_block_of_code_is_cut_at_a_blank_line_before_any_other() -> None:
    lines = [f"x{n} = f( y{n} ) # Why. Because it is so" for n in range(4)]
    code = "```\n" + "\n".join(lines[:1]) + "\n\n" + "\n".join(lines[1:]) + "\n```"
    assert cut(code, ChunkTokenLimits(least=5, most=38)) == ["```\n" + lines[0], "\n".join(lines[1:]) + "\n```"]


def test_a_heading_goes_with_what_it_is_over() -> None:
    assert cut(f"{words(5)}\n\n# A heading\n\n{words(9)}") == [words(5), f"# A heading\n\n{words(9)}"]


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    """In quarters of the limit and the rest, 75 + 75 and 75 + 75 + 10."""
    assert [len(chunk.split()) for chunk in cut(words(310), ChunkTokenLimits())] == [150, 160]


def test_a_word_that_is_too_long_is_cut_between_signs_and_no_accent_is_torn_off() -> None:
    text = "e\u0301" * 100
    chunks = asyncio.run(split_into_chunks(text, by_signs, ChunkTokenLimits(least=5, most=90)))
    assert "".join(chunks) == text
    assert len(chunks) > 1
    assert not any(chunk.startswith("\u0301") for chunk in chunks)


def test_a_tokenizer_that_counts_more_in_the_whole_than_in_its_parts_gets_its_limit_too() -> None:
    async def squared(texts: Sequence[str]) -> list[int]:
        return [len(text.split()) ** 2 // 4 for text in texts]

    text = f"{words(9)}. A{words(9)}. B{words(9)}."
    chunks = asyncio.run(split_into_chunks(text, squared, SMALL))
    assert "".join(chunks) == text
    assert all(count <= SMALL.most for count in asyncio.run(squared(chunks)))


def test_tiny_sentences_are_no_place_to_cut_at() -> None:
    found = [TextAtom("No. ", 1, 1), TextAtom("Long. ", 1, 20), TextAtom("End.", 0, 1), TextAtom("Next.", 0, 1)]
    assert [atom.text for atom in join_tiny_atoms(found, ChunkTokenLimits())] == ["No. Long. End.", "Next."]


# --- laws -------------------------------------------------------------------------------------------------------

texts = st.lists(
    st.sampled_from(
        ["a ", "word ", "Ends. ", "So? ", "\n", "\n\n", "- item ", "# Top", "```\n", "    code ", "1. ", "雨だ。",
         "e\u0301", "x" * 95, "| cell ", "👩‍👩‍👧", ": ", "...", "\n \n", "~~~\n"]
    ),
    max_size=60,
).map("".join)  # fmt: skip


@settings(max_examples=300)
@given(
    texts,
    st.sampled_from([SMALL, ChunkTokenLimits(2, 30), ChunkTokenLimits(10, 25)]),
    st.sampled_from([by_words, by_signs]),
)
@example("a " + 3 * "👩\u200d👩\u200d👧", SMALL, by_signs)
def test_chunks_join_back_and_keep_to_their_limits(text: str, limits: ChunkTokenLimits, count: object) -> None:
    """Never above the greatest length, unless it is a single sign. Below the least one only if the whole text is, or if
    with either neighbour it would be above the greatest, also where words are cut; by a tokenizer that counts in a text
    what it counts in the parts of it, as one that counts words does not, if a word is cut, and none of them as 0."""
    assert callable(count)
    text = normalize_unicode_and_whitespace(text)
    chunks = asyncio.run(split_into_chunks(text, count, limits))
    assert "".join(chunks) == text
    lengths = asyncio.run(count(chunks))
    assert all(chunk.strip() for chunk in chunks)
    assert all(length <= limits.most for length in lengths)
    for at, length in enumerate(lengths if count is by_signs else []):
        if length < limits.least and len(lengths) > 1:
            beside = [lengths[other] for other in (at - 1, at + 1) if 0 <= other < len(lengths)]
            assert all(length + other > limits.most for other in beside), chunks


atoms = st.lists(st.builds(TextAtom, st.just("x"), st.sampled_from([0, 0, 1, 2]), st.integers(1, 9)), max_size=9)


@given(atoms)
def test_no_other_partition_has_fewer_short_chunks_or_cuts_less(found: list[TextAtom]) -> None:
    """Against all there are."""
    limits = ChunkTokenLimits(least=4, most=12)

    def cost(parts: Sequence[Sequence[TextAtom]]) -> tuple[int, int, int, int]:
        lengths = [sum(atom.tokens for atom in part) for part in parts]
        return (
            sum(length < limits.least for length in lengths),
            sum(part[-1].cut for part in parts[:-1]),
            sum(not atom.cut for part in parts for atom in part[:-1]),
            sum(length * length for length in lengths),
        )

    every = [
        [found[start:end] for start, end in itertools.pairwise((0, *bounds, len(found)))]
        for number in range(len(found))
        for bounds in itertools.combinations(range(1, len(found)), number)
    ] if found else [[]]  # fmt: skip
    allowed = [parts for parts in every if all(sum(atom.tokens for atom in part) <= limits.most for part in parts)]
    assert cost(partition_atoms_into_chunks(found, limits)) == min(map(cost, allowed))


# --- how long it takes ------------------------------------------------------------------------------------------


async def like_a_model(texts: Sequence[str]) -> list[int]:
    """None of what cannot be seen."""
    return [len(re.findall(r"[^\s\u200b]{1,4}", text)) for text in texts]


def seconds(text: str) -> float:
    """Of the processor, the lesser of two."""

    def once() -> float:
        begun = time.process_time()
        asyncio.run(split_into_chunks(normalize_unicode_and_whitespace(text), like_a_model))
        return time.process_time() - begun

    return min(once() for _ in range(2))


@pytest.mark.slow
@for_each_row("unit", [".", "\u200b\n\n", "a\n \n", "a\n", "a", "- a\n"])
def test_the_time_grows_with_the_length_and_not_with_its_square(unit: str) -> None:
    """Four times the text: 4 times as long, and not 16."""
    short = unit * (8_000 // len(unit)) + "x"
    long = unit * (32_000 // len(unit)) + "x"
    assert seconds(long) < 9 * seconds(short) + 0.02


async def test_a_paragraph_that_the_tokenizer_passes_over_counts_for_one_token() -> None:
    chunks = await split_into_chunks("\u200b\n\n" * 30 + "x", like_a_model, SMALL)
    assert max(chunk.count("\u200b") for chunk in chunks) <= SMALL.most
