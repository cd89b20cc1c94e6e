"""Passages of what nobody has decided about (spec L3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import DatedAction, Memory, Scene
from madeleine.patrol.deciding.passages import (
    MAX_PASSAGE_BYTES,
    MAX_PASSAGE_MEMORIES,
    compression_requests_with_passages,
    passages_of_summarised_scenes,
)
from tests.doubles import NOW, a_memory


def of_session(memory: Memory, session: str, *, days: int = 0) -> Memory:
    return replace(
        memory, provenance=replace(memory.provenance, session_id=session), happened_at=NOW + timedelta(days=days)
    )


def test_a_passage_names_who_acts_where_there_are_several_and_how_it_felt() -> None:
    ann = of_session(a_memory("I sang", actors=("Ann",), feeling="warm"), "s")
    ben = of_session(a_memory("I rowed", actors=("Ben",)), "s")
    [(request, passage)] = compression_requests_with_passages([ann, ben])
    assert (passage, request.session_id) == ("Ann: I sang (warm)\nBen: I rowed", "s")


def test_sessions_and_days_are_not_joined_and_one_scene_is_no_passage() -> None:
    alone, next_day = of_session(a_memory("a"), "s"), of_session(a_memory("b"), "s", days=1)
    other = [of_session(a_memory(text), "t") for text in "cd"]
    assert [passage for _, passage in compression_requests_with_passages([alone, next_day, *other])] == ["c\nd"]


@given(st.lists(st.integers(1, 900), max_size=40))
def test_passages_are_bounded_and_hold_every_scene_word_for_word(sizes: list[int]) -> None:
    """ruling 26: nothing is left out."""
    told = [of_session(a_memory(f"{at}{'a' * size}"), "s") for at, size in enumerate(sizes)]
    held: list[str] = []
    for request, passage in compression_requests_with_passages(told):
        lines = passage.splitlines()
        assert 2 <= len(lines) <= MAX_PASSAGE_MEMORIES
        assert len(passage.encode()) <= MAX_PASSAGE_BYTES
        assert lines == [memory.text for memory in request.memories]
        held += lines
    assert [text for text in (memory.scene.action for memory in told) if text in held] == held


def test_what_an_assistant_said_stands_apart_from_what_its_user_told() -> None:
    """ADR 80: in one passage the user's two lines drown in the assistant's page."""
    user, assistant = ("user",), ("assistant",)
    told = [
        of_session(a_memory(text, actors=actors), "s")
        for text, actors in (("I sing", user), ("x" * 800, assistant), ("I row", user), ("y" * 800, assistant))
    ]
    passages = [passage for _, passage in compression_requests_with_passages(told)]
    assert sorted(passages) == ["I sing\nI row", "x" * 800 + "\n" + "y" * 800]
    assert len(passages[-1].encode()) > MAX_PASSAGE_BYTES
    assert [
        passage
        for _, passage in compression_requests_with_passages(
            [told[0], of_session(a_memory("Ah", actors=assistant), "s")]
        )
    ]


def test_a_scene_of_several_lines_is_one_line_of_a_passage() -> None:
    first, second = (of_session(replace(a_memory("x"), scene=Scene(action=text)), "s") for text in ("a\nb", "c"))
    [(_, passage)] = compression_requests_with_passages([first, second])
    assert passage == "a b\nc"


def test_whatever_a_summary_hides_stands_word_for_word_in_one_passage() -> None:
    """spec L3, ruling 26: a long scene, one of another day and an assistant's alone, too."""
    told = [
        of_session(a_memory("x" * 2_000), "s"),
        of_session(a_memory("I sing"), "s"),
        of_session(a_memory("I row"), "s"),
        of_session(a_memory("Alone on the next day"), "s", days=1),
    ]
    passages = [(part, text) for part, text in passages_of_summarised_scenes(told)]
    assert [text for _, text in passages] == ["I sing\nI row", "x" * 2_000, "Alone on the next day"]
    assert sorted(one.id for part, _ in passages for one in part) == sorted(one.id for one in told)


def test_a_passage_tells_all_that_its_scenes_tell() -> None:
    """ruling 26: their setting, their words and what they have absorbed; else these are found no more."""
    ann = a_memory("Ann agreed", setting="In Lyon", dialogue=("I will come.",), when=("2026-03-01",))
    absorbed = replace(ann.scene, when=("2026-03-01", DatedAction("2026-03-02", "She asked for 900 euros")))
    scenes = [of_session(replace(ann, scene=absorbed), "s"), of_session(a_memory("Ann left"), "s")]
    [(_, passage)] = compression_requests_with_passages(scenes)
    assert passage == 'Ann agreed "I will come." (In Lyon) 2026-03-02: She asked for 900 euros\nAnn left'
