"""spec P6 ❹ ❻, P8, L3; ruling 10: which answers count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from madeleine.memory.language_model import RejectedModelAnswer
from madeleine.memory.model import ClusterId, Memory, MemoryId
from madeleine.patrol.deciding.answers import CheckedDecisionAnswer, CurrentOfferedMemories, DecisionAnswer
from madeleine.patrol.deciding.compress import SessionSummaryAnswer
from madeleine.patrol.deciding.consolidate import ConsolidationAnswer, MemoryMerge
from madeleine.patrol.deciding.diary import DiaryWritingAnswer
from madeleine.patrol.deciding.requests import DecisionRequest
from madeleine.patrol.deciding.split import ClusterSplitAnswer, ClusterSplitPart
from tests.doubles import a_memory
from tests.rows import for_each_row
from tests.unit.patrol.deciding.request_fixtures import HOME, checked, current_of, request_of

A, B, C, D = (MemoryId(name) for name in "ABCD")


def ids(names: str) -> tuple[MemoryId, ...]:
    return tuple(MemoryId(name) for name in names)


def home(name: str) -> Memory:
    return a_memory(f"scene {name}", id=MemoryId(name), cluster_id=HOME)


def fading(name: str) -> Memory:
    return replace(home(name), status="dying", session_count=70, fresh=False)


def refusal(answer: DecisionAnswer, offer: DecisionRequest) -> str:
    result = answer.normalized_answer_or_rejection(offer)
    assert isinstance(result, RejectedModelAnswer)
    return result.reason


def kept(answer: DecisionAnswer, offer: DecisionRequest, present: CurrentOfferedMemories) -> CheckedDecisionAnswer:
    result = checked(answer, offer, present)
    assert isinstance(result, CheckedDecisionAnswer)
    return result


# --- ❹, the offer -----------------------------------------------------------------------------------------------

FOUR = [home("A"), home("B"), replace(home("C"), pinned=True), fading("D")]


def test_a_merge_and_a_death_that_keep_the_rules_count() -> None:
    """spec P6 ❹"""
    answer = ConsolidationAnswer((MemoryMerge(C, (A, B)),), (D,))
    assert checked(answer, request_of("consolidate", FOUR), current_of(FOUR)) == CheckedDecisionAnswer(answer)


def test_every_dying_memory_is_decided_if_only_to_be_kept() -> None:
    """ruling 20"""
    keeps = ConsolidationAnswer(keep=(D,))
    assert checked(keeps, request_of("consolidate", FOUR), current_of(FOUR)) == CheckedDecisionAnswer(keeps)
    assert "Decide every dying memory" in refusal(ConsolidationAnswer(), request_of("consolidate", FOUR))
    assert "keep take dying memories" in refusal(
        ConsolidationAnswer(make_dead=(D,), keep=(A,)), request_of("consolidate", FOUR)
    )


@for_each_row(
    ("answer", "dead", "kept_ids"),
    [
        (ConsolidationAnswer((), (A,), (D,)), "ABC", "D"),
        (ConsolidationAnswer((), (D,), (A,)), "D", "ABC"),
        (ConsolidationAnswer((), (A, D), (C,)), "ADB", "C"),
        (ConsolidationAnswer((), (B, D), (A,)), "BD", "AC"),
    ],
)
def test_parts_of_a_text_go_with_its_first_one_unless_they_are_named(
    answer: ConsolidationAnswer, dead: str, kept_ids: str
) -> None:
    """ADR 82"""
    memories = [fading(name) for name in "ABCD"]
    offer = request_of("consolidate", memories)
    first, *others, alone = offer.memories
    offer = replace(offer, memories=(first, *(replace(part, part_of=A) for part in others), alone))
    result = kept(answer, offer, current_of(memories)).answer
    assert isinstance(result, ConsolidationAnswer)
    assert (result.make_dead, result.keep) == (ids(dead), ids(kept_ids))
    assert kept(result, offer, current_of(memories)).answer == result


@for_each_row("merge", [MemoryMerge(D, (A,)), MemoryMerge(A, (D,))])
def test_a_text_in_parts_is_not_merged(merge: MemoryMerge) -> None:
    """ADR 82: only the beginnings of its parts were shown. It is kept, and so is what it was to be merged with."""
    memories = [fading("A"), fading("B"), fading("D")]
    offer = request_of("consolidate", memories)
    offer = replace(offer, memories=(offer.memories[0], replace(offer.memories[1], part_of=A), offer.memories[2]))
    result = kept(ConsolidationAnswer((merge,)), offer, current_of(memories))
    assert result.answer == ConsolidationAnswer(keep=(B, A, D))
    assert "several parts" in result.left_out[0]


@for_each_row(
    ("answer", "reason"),
    [
        (ConsolidationAnswer((MemoryMerge(A, ids("Z")),)), "'Z' was not offered"),
        (ConsolidationAnswer((MemoryMerge(MemoryId("Z"), (A,)),)), "'Z' was not offered"),
        (ConsolidationAnswer((), ids("Z")), "'Z' was not offered"),
        (ConsolidationAnswer((MemoryMerge(A, (A,)),)), "'A' is named 2 times"),
        (ConsolidationAnswer((MemoryMerge(A, (B, B)),)), "'B' is named 2 times"),
        (ConsolidationAnswer((MemoryMerge(A, (B,)), MemoryMerge(A, (D,)))), "'A' is named 2 times"),
        (ConsolidationAnswer((MemoryMerge(A, (B,)), MemoryMerge(B, (D,)))), "'B' is named 2 times"),
        (ConsolidationAnswer((MemoryMerge(A, (D,)),), (D,)), "'D' is named 2 times"),
        (ConsolidationAnswer((MemoryMerge(A, ()),)), "absorbs nothing"),
        (ConsolidationAnswer((MemoryMerge(A, (C,)),)), "'C' is pinned"),
        (ConsolidationAnswer((), (C,)), "'C' is pinned"),
        (ConsolidationAnswer((), (A,)), "'A' is active: make_dead and keep take dying memories only"),
    ],
)
def test_a_consolidation_that_breaks_a_rule_is_refused(answer: ConsolidationAnswer, reason: str) -> None:
    """spec P6 ❹, ruling 10"""
    assert reason in refusal(answer, request_of("consolidate", FOUR))


def test_a_refusal_names_what_is_wrong_all_at_once_up_to_five() -> None:
    reason = refusal(ConsolidationAnswer((), ids("STUVWXYZ")), request_of("consolidate", FOUR))
    assert reason.count("was not offered") == 5


def test_an_answer_to_another_kind_of_offer_is_refused() -> None:
    assert "to consolidate" in refusal(ClusterSplitAnswer(), request_of("consolidate", FOUR))
    assert "to diary" in refusal(SessionSummaryAnswer("x"), request_of("diary", FOUR))


# --- ❹, the memories now ----------------------------------------------------------------------------------------


@for_each_row(
    ("now", "reason"),
    [
        (None, "was forgotten"),
        (replace(home("B"), status="dead"), "is dead by now"),
        (replace(home("B"), cluster_id=ClusterId("elsewhere")), "is in another cluster by now"),
        (replace(home("B"), cluster_id=None), "is in another cluster by now"),
        (a_memory("another", id=B, cluster_id=HOME), "says something else by now"),
        (replace(home("B"), pinned=True), "is pinned by now"),
        (replace(home("B"), truth="superseded"), "is not true any more"),
    ],
)
def test_what_changed_since_is_not_absorbed_and_the_rest_counts(now: Memory | None, reason: str) -> None:
    """ruling 10: decided in one call, applied in a later one."""
    memories = [home("A"), *([now] if now else []), home("C"), fading("D")]
    offer = request_of("consolidate", [home("A"), home("B"), home("C"), fading("D")])
    result = kept(ConsolidationAnswer((MemoryMerge(A, (B, C)),), (D,)), offer, current_of(memories))
    assert result.answer == ConsolidationAnswer((MemoryMerge(A, (C,)),), (D,))
    (why,) = result.left_out
    assert why.startswith(f"B {reason}")


def test_dying_memories_that_may_not_be_merged_are_kept() -> None:
    """ruling 20: every dying memory offered is decided. Left as they were, they were offered again without end."""
    memories = [fading("A"), fading("B"), fading("C"), home("D")]
    memories[1] = replace(memories[1], scene=replace(memories[1].scene, action="scene A with 3 carrots"))
    memories[0] = replace(memories[0], scene=replace(memories[0].scene, action="scene A with 2 carrots"))
    answer = ConsolidationAnswer((MemoryMerge(A, (B,)),), make_dead=(C,))
    result = kept(answer, request_of("consolidate", memories), current_of(memories))
    assert result.answer == ConsolidationAnswer(make_dead=(C,), keep=(A, B))
    assert result.left_out[-1] == "A, B: kept instead."


def test_a_summary_is_merged_with_nothing_and_kept() -> None:
    """ADR 86: it tells of several memories."""
    pair = [replace(fading("A"), compression_source=True), fading("B")]
    for merge in (MemoryMerge(A, (B,)), MemoryMerge(B, (A,))):
        result = kept(ConsolidationAnswer((merge,)), request_of("consolidate", pair), current_of(pair))
        assert result.answer == ConsolidationAnswer(keep=(A, B))
        assert "summary or a passage" in result.left_out[0]


def test_what_has_changed_since_is_not_kept_in_place_of_a_merge_but_offered_anew() -> None:
    """ruling 10"""
    memories = [fading("A"), fading("B")]
    changed = replace(memories[1], scene=replace(memories[1].scene, action="another"))
    answer = ConsolidationAnswer((MemoryMerge(A, (B,)),))
    result = kept(answer, request_of("consolidate", memories), current_of([memories[0], changed]))
    assert result.answer == ConsolidationAnswer(keep=(A,))


@for_each_row(
    ("survivor", "absorbed", "difference"),
    [
        ("The tender is due by 4 December.", "Its closing date is 11 December, noon.", "another number (11, not 4)"),
        ("Ada's phone is 0171 5550102.", "Ben's phone is 0171 5550199.", "another number"),
        ("The standup is on Monday.", "The standup is held every Friday.", "another day (friday, not monday)"),
        ("Jazz is liked by Tom.", "Jazz is liked by Anna.", "another name (anna, not tom)"),
        ("Files are indented with tabs.", "Files are not indented with tabs.", "denies"),
        ("Nina kauft am Markt zwei Lampen.", "Nina kauft drei Lampen.", "another number (3, not 2)"),
        ("Ann cooked soup in May.", "In May, Ann made lentil soup at home with 3 carrots.", ""),
    ],
)
def test_two_facts_are_never_merged_and_the_refusal_says_why(survivor: str, absorbed: str, difference: str) -> None:
    """ruling 13"""
    memories = [a_memory(survivor, id=A, cluster_id=HOME), a_memory(absorbed, id=B, cluster_id=HOME), home("C")]
    result = kept(
        ConsolidationAnswer((MemoryMerge(A, (B, C)),)), request_of("consolidate", memories), current_of(memories)
    )
    if difference:
        assert result.answer == ConsolidationAnswer((MemoryMerge(A, (C,)),))
        assert difference in result.left_out[0]
        assert "supersede" in result.left_out[0]
    else:
        assert result.answer == ConsolidationAnswer((MemoryMerge(A, (B, C)),))


@pytest.mark.parametrize("merge", [MemoryMerge(A, (B,)), MemoryMerge(B, (A,))])
def test_what_is_not_true_any_more_is_never_merged(merge: MemoryMerge) -> None:
    """ruling 14: not with its successor, nor with anything else. It may die."""
    faded = replace(fading("B"), truth="superseded", superseded_by=A)
    offer = request_of("consolidate", [home("A"), faded])
    assert "never merged" in refusal(ConsolidationAnswer((merge,)), offer)
    answer = ConsolidationAnswer((), (B,))
    assert checked(answer, offer, current_of([home("A"), faded])) == CheckedDecisionAnswer(answer)


def test_nothing_is_merged_into_a_survivor_that_is_gone() -> None:
    offer = request_of("consolidate", FOUR)
    result = kept(ConsolidationAnswer((MemoryMerge(A, (B,)),), (D,)), offer, current_of(FOUR[1:]))
    assert result == CheckedDecisionAnswer(
        ConsolidationAnswer((), (D,)), ("A was forgotten: nothing was merged into it.",)
    )


def test_a_merge_with_nothing_left_to_absorb_is_none() -> None:
    result = kept(
        ConsolidationAnswer((MemoryMerge(A, (B,)),)), request_of("consolidate", FOUR[:3]), current_of([FOUR[0]])
    )
    assert result.answer == ConsolidationAnswer()


@for_each_row(
    ("now", "reason"),
    [
        (replace(fading("D"), session_count=0), "was recalled since"),
        (replace(fading("D"), status="active", session_count=0), "was recalled since"),
        (replace(fading("D"), importance=1.0), "was recalled since"),
        (replace(fading("D"), pinned=True), "is pinned by now"),
        (replace(fading("D"), status="dead"), "is dead by now"),
    ],
)
def test_a_dying_memory_that_was_recalled_since_stays(now: Memory, reason: str) -> None:
    """spec P6 ❹, ruling 2: activation rewinds the clock."""
    result = kept(ConsolidationAnswer((), (D,)), request_of("consolidate", FOUR), current_of([*FOUR[:3], now]))
    assert result == CheckedDecisionAnswer(ConsolidationAnswer(), (f"D {reason}: it was not made dead.",))


def test_a_pinned_memory_may_be_a_survivor() -> None:
    result = kept(ConsolidationAnswer((MemoryMerge(C, (A,)),)), request_of("consolidate", FOUR[:3]), current_of(FOUR))
    assert result.answer == ConsolidationAnswer((MemoryMerge(C, (A,)),))


def test_nothing_that_is_recalled_disappears_behind_a_summary() -> None:
    """spec L3, 3.3: compressed memories are not recalled; what is merged into one would not be either."""
    memories = [replace(home("A"), compressed=True), home("B"), replace(home("C"), compressed=True)]
    result = kept(
        ConsolidationAnswer((MemoryMerge(A, (B, C)),)), request_of("consolidate", memories), current_of(memories)
    )
    assert result.answer == ConsolidationAnswer((MemoryMerge(A, (C,)),))
    assert len(result.left_out) == 1


# --- ❻ ----------------------------------------------------------------------------------------------------------

TWELVE = [home(name) for name in "ABCDEFGHIJKL"]


def split(*parts: tuple[str, str]) -> ClusterSplitAnswer:
    return ClusterSplitAnswer(tuple(ClusterSplitPart(name, ids(members)) for name, members in parts))


def test_a_split_that_keeps_the_rules_counts_with_tidy_names() -> None:
    """spec P6 ❻"""
    result = kept(
        split(("  Ramen \n evenings ", "AB"), ("Trains", "CDE")), request_of("split", TWELVE), current_of(TWELVE)
    )
    assert result == CheckedDecisionAnswer(split(("Ramen evenings", "AB"), ("Trains", "CDE")))


def test_that_all_is_one_topic_is_an_answer() -> None:
    assert checked(ClusterSplitAnswer(), request_of("split", TWELVE), current_of(TWELVE)) == CheckedDecisionAnswer(
        ClusterSplitAnswer()
    )


@for_each_row(
    ("answer", "reason"),
    [
        (split(("Ramen", "A")), "fewer than 2"),
        (split(("Ramen", "AA")), "fewer than 2"),
        (split(("Ramen", "AAB")), "'A' is named 2 times"),
        (split(("Ramen", "AB"), ("Trains", "BC")), "'B' is named 2 times"),
        (split(("Ramen", "AZ")), "'Z' was not offered"),
        (split(("Ramen", "ABCDEFGHIJK")), "At least 2 of the memories shown must stay"),
        (split((" \n", "AB")), "name of part 1 is empty"),
        (split(("x" * 61, "AB")), "name of part 1 has 61 characters"),
        (split(("a\x00b", "AB")), "cannot be stored"),
        (split(("Ramen", "AB"), ("ramen", "CD")), "name of part 2 is taken"),
    ],
)
def test_a_split_that_breaks_a_rule_is_refused(answer: ClusterSplitAnswer, reason: str) -> None:
    """spec P6 ❻: ≥ 2 in each, ≥ 2 remain."""
    assert reason in refusal(answer, request_of("split", TWELVE))


def test_a_part_without_a_name_is_refused() -> None:
    """It was made, and named by the id of its first memory."""
    unnamed = ClusterSplitAnswer((ClusterSplitPart("A", ids("BC")),))
    assert "has no name" in refusal(unnamed, request_of("split", FOUR))


def test_a_part_with_the_name_of_the_cluster_is_what_stays_in_it() -> None:
    """It was refused, and with it the other parts."""
    answer = split(("DINNERS", "AB"), ("Ramen", "CD"))
    assert kept(answer, request_of("split", TWELVE), current_of(TWELVE)) == CheckedDecisionAnswer(
        split(("Ramen", "CD"))
    )


def test_two_memories_may_remain() -> None:
    """spec P6 ❻: at least 2 remain."""
    answer = split(("Ramen", "ABCDEFGHIJ"))
    assert kept(answer, request_of("split", TWELVE), current_of(TWELVE)) == CheckedDecisionAnswer(answer)


def test_a_memory_dying_since_the_offer_is_not_moved() -> None:
    now = [fading("A") if m.id == A else m for m in TWELVE]
    result = kept(split(("Ramen", "ABC")), request_of("split", TWELVE), current_of(now))
    assert result.answer == split(("Ramen", "BC"))
    assert result.left_out == ("A is dying by now: it was not moved to part 1.",)


def test_a_part_with_one_memory_left_is_not_made() -> None:
    result = kept(split(("Ramen", "AB"), ("Trains", "CD")), request_of("split", TWELVE), current_of(TWELVE[1:]))
    assert result.answer == split(("Trains", "CD"))
    assert len(result.left_out) == 2


@for_each_row("present", [current_of([]), current_of(TWELVE, active_count=10), current_of(TWELVE, is_root=True)])
def test_a_cluster_that_is_small_by_now_or_gone_or_a_root_is_not_split(present: CurrentOfferedMemories) -> None:
    """spec P6 ❻: more than 10 active, never a root."""
    result = kept(split(("Ramen", "AB")), request_of("split", TWELVE), present)
    assert result.answer == ClusterSplitAnswer()
    assert result.left_out


def test_two_active_memories_remain_whatever_happened_meanwhile() -> None:
    """spec P6 ❻: the two that were to stay are gone."""
    now = [*TWELVE[:10], home("M")]
    result = kept(split(("Ramen", "ABCDE"), ("Trains", "FGHIJ")), request_of("split", TWELVE), current_of(now))
    assert result.answer == split(("Ramen", "ABCDE"))


# --- diary, summary ---------------------------------------------------------------------------------------------

POINTS = ("one", "two", "three")


def test_a_diary_loses_blank_lines_and_bullets() -> None:
    """spec P8"""
    answer = DiaryWritingAnswer(" a \n\n b\r\n c\n", ("- one", " 2. two ", "• three", "  "))
    assert answer.normalized_answer_or_rejection(request_of("diary", FOUR)) == DiaryWritingAnswer("a\nb\nc", POINTS)


def test_a_diary_in_one_line_has_its_sentences_for_lines() -> None:
    answer = DiaryWritingAnswer("We met. It rained! Was I glad? 嬉しかった。寝た。", POINTS)
    result = answer.normalized_answer_or_rejection(request_of("diary", FOUR))
    assert result == DiaryWritingAnswer("We met.\nIt rained!\nWas I glad?\n嬉しかった。\n寝た。", POINTS)


@for_each_row(
    ("answer", "reason"),
    [
        (DiaryWritingAnswer("a\nb", POINTS), "diary has 2 lines: write 3 to 5"),
        (DiaryWritingAnswer("a\nb\nc\nd\ne\nf", POINTS), "diary has 6 lines"),
        (DiaryWritingAnswer("", POINTS), "diary is empty"),
        (DiaryWritingAnswer("a\nb\n" + "c" * 2_000, POINTS), "at most 2,000"),
        (DiaryWritingAnswer("a\nb\nc\ud800", POINTS), "cannot be stored"),
        (DiaryWritingAnswer("a\nb\nc", ("one", "two")), "think_md has 2 points: write 3 to 7"),
        (DiaryWritingAnswer("a\nb\nc", ("x",) * 8), "think_md has 8 points"),
        (DiaryWritingAnswer("a\nb\nc", ("one", "two", "x" * 301)), "at most 300"),
    ],
)
def test_a_diary_that_breaks_a_rule_is_refused(answer: DiaryWritingAnswer, reason: str) -> None:
    """spec P8: 3–5 lines, 3–7 points."""
    assert reason in refusal(answer, request_of("diary", FOUR))


@pytest.mark.parametrize(("text", "reason"), [(" \n ", "summary is empty"), ("x" * 2_001, "at most 2,000")])
def test_a_summary_that_breaks_a_rule_is_refused(text: str, reason: str) -> None:
    """spec L3"""
    assert reason in refusal(SessionSummaryAnswer(text), request_of("compress", FOUR))


def test_a_summary_is_stripped() -> None:
    assert checked(
        SessionSummaryAnswer(" Ada rents. \n"), request_of("compress", FOUR), current_of(FOUR)
    ) == CheckedDecisionAnswer(SessionSummaryAnswer("Ada rents."))


@pytest.mark.parametrize("now", [FOUR[1:], [a_memory("another", id=A), *FOUR[1:]]])
def test_no_text_is_written_from_what_was_forgotten_or_changed_since(now: list[Memory]) -> None:
    """ruling 11: a forgotten memory is gone everywhere, so it must not come back in a summary."""
    for answer, offer in (
        (SessionSummaryAnswer("Ada rents."), request_of("compress", FOUR)),
        (DiaryWritingAnswer("a\nb\nc", POINTS), request_of("diary", FOUR)),
    ):
        result = checked(answer, offer, current_of(now))
        assert isinstance(result, RejectedModelAnswer)
        assert "'A'" in result.reason


def test_a_session_is_not_summarised_twice() -> None:
    """spec L3"""
    now = [replace(memory, compressed=True) for memory in FOUR]
    assert isinstance(
        checked(SessionSummaryAnswer("Ada rents."), request_of("compress", FOUR), current_of(now)), RejectedModelAnswer
    )
