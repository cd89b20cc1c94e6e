"""spec H5: prompt reduction drops the least valuable first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.context.prompt import (
    PROMPT_PART_PRIORITY,
    PromptEntryTokenCosts,
    RenderedPromptBlockEntry,
    select_prompt_entries,
)
from madeleine.memory.rules.prompting import PROMPT_PART_NAMES, PromptPartName

NO_TAGS = dict.fromkeys(PROMPT_PART_NAMES, 0)


def piece(part: PromptPartName, id_: str, rank: int = 0, full: str = "") -> RenderedPromptBlockEntry:
    return RenderedPromptBlockEntry(part=part, id=id_, text=f"- {id_}", rank=rank, full_text=full)


def left(pieces: list[RenderedPromptBlockEntry], tokens: list[int], limit: int, **costs: object) -> list[str]:
    given = {"full_text_tokens": tokens, "part_tag_tokens": NO_TAGS, "fixed_tokens": 0} | costs
    choice = select_prompt_entries(pieces, PromptEntryTokenCosts(entry_tokens=tokens, **given), limit=limit)  # type: ignore[arg-type]
    return [one.id for position, one in enumerate(pieces) if position in choice]


def test_every_part_has_its_worth() -> None:
    assert sorted(part for part in PROMPT_PART_PRIORITY if part) == sorted(PROMPT_PART_NAMES)


def test_other_chats_are_dropped_first_oldest_first_and_the_policies_last() -> None:
    """One piece of ten tokens of each part, two of other chats: each ten tokens less take one more away."""
    pieces = [piece("history_recent", "older", 1), *(piece(part, part) for part in PROMPT_PART_NAMES)]
    going = ["older", "history_recent", "history_current_chat", "memories", "recent_nodes", "diary", "knowledge",
             "map", "tools", "relationships", "thoughts", "changes", "important", "notes", "due", "memory_block",
             "pinned", "preferences", "partner_rules", "core_blocks", "soul", "policies"]  # fmt: skip
    for gone in range(len(pieces) + 1):
        limit = 10 * (len(pieces) - gone)
        assert set(left(pieces, [10] * len(pieces), limit)) == {one.id for one in pieces} - set(going[:gone])


def test_of_one_part_the_last_by_rank_goes_first() -> None:
    pieces = [piece("memory_block", "second", 1), piece("memory_block", "best", 0), piece("memory_block", "third", 2)]
    assert left(pieces, [5, 5, 5], 10) == ["second", "best"]


def test_what_one_that_is_too_long_leaves_free_goes_to_those_after_it() -> None:
    """By hand: 30 of 40 for the rule; the memory of 20 does not fit; the note of 10 does."""
    pieces = [piece("partner_rules", "rule"), piece("memory_block", "long"), piece("notes", "note")]
    assert left(pieces, [30, 20, 10], 40) == ["rule", "note"]


def test_what_surrounds_a_part_is_paid_once_with_its_first_piece() -> None:
    """By hand: 4 + 5 for the first note, 5 for the second, and 4 + 5 for the hit would be 23."""
    pieces = [piece("notes", "a", 0), piece("notes", "b", 1), piece("memories", "hit")]
    tags = NO_TAGS | {"notes": 4, "memories": 4}
    assert left(pieces, [5, 5, 5], 22, part_tag_tokens=tags) == ["a", "b"]
    assert left(pieces, [5, 5, 5], 23, part_tag_tokens=tags) == ["a", "b", "hit"]
    assert left(pieces, [5, 5, 5], 8, part_tag_tokens=tags) == []


def test_a_day_is_told_in_short_before_anything_else_of_worth_goes() -> None:
    """By hand: short days take 5 each, in full 20. 40 hold the hit (10), both days (10), and one of them in full."""
    pieces = [piece("diary", "old", 1, "full"), piece("diary", "new", 0, "full"), piece("memories", "hit")]
    costs = PromptEntryTokenCosts(entry_tokens=[5, 5, 10], full_text_tokens=[20, 20, 0], part_tag_tokens=NO_TAGS)
    assert select_prompt_entries(pieces, costs, limit=50) == {0: True, 1: True, 2: False}
    assert select_prompt_entries(pieces, costs, limit=40) == {0: False, 1: True, 2: False}
    assert select_prompt_entries(pieces, costs, limit=20) == {0: False, 1: False, 2: False}


def test_nothing_stays_if_not_even_what_is_always_there_fits() -> None:
    assert left([piece("soul", "voice")], [1], 9, fixed_tokens=10) == []
    assert left([piece("soul", "voice")], [1], 11, fixed_tokens=10) == ["voice"]


@st.composite
def some_pieces(draw: st.DrawFn) -> tuple[list[RenderedPromptBlockEntry], PromptEntryTokenCosts]:
    parts = draw(st.lists(st.sampled_from(PROMPT_PART_NAMES), max_size=20))
    pieces = [
        piece(part, str(n), draw(st.integers(0, 5)), "full" if part == "diary" else "") for n, part in enumerate(parts)
    ]
    tokens = draw(st.lists(st.integers(0, 30), min_size=len(parts), max_size=len(parts)))
    more = draw(st.lists(st.integers(0, 30), min_size=len(parts), max_size=len(parts)))
    tags: dict[PromptPartName, int] = {part: draw(st.integers(0, 5)) for part in PROMPT_PART_NAMES}
    full = [a + b for a, b in zip(tokens, more, strict=True)]
    return pieces, PromptEntryTokenCosts(
        entry_tokens=tokens, full_text_tokens=full, part_tag_tokens=tags, fixed_tokens=draw(st.integers(0, 10))
    )


@given(some_pieces(), st.integers(0, 300))
def test_the_limit_is_never_exceeded_and_all_stays_where_there_is_room(
    given_: tuple[list[RenderedPromptBlockEntry], PromptEntryTokenCosts], limit: int
) -> None:
    pieces, costs = given_
    choice = select_prompt_entries(pieces, costs, limit=limit)
    used = sum(costs.full_text_tokens[n] if in_full else costs.entry_tokens[n] for n, in_full in choice.items())
    used += sum(costs.part_tag_tokens[part] for part in {pieces[n].part for n in choice})
    assert not choice or used + costs.fixed_tokens <= limit
    everything = select_prompt_entries(pieces, costs, limit=10_000)
    assert everything == {n: bool(one.full_text) for n, one in enumerate(pieces)}
