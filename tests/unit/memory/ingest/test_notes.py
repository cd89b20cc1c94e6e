"""spec P6 ❶, ruling 1: what a scene note becomes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.ingest.notes import add_note, memory_or_fault_from_scene_note
from madeleine.memory.model import DatedAction, EmotionVector, Memory, Note, NoteId, Scope
from tests.doubles import ADA, NOW
from tests.rows import for_each_row


def note(content: str) -> Note:
    return Note(id=NoteId("n"), being_id=ADA.being_id, type="scene", content=content, created_at=NOW)


def read(scene: Any) -> Memory:
    found = memory_or_fault_from_scene_note(note(json.dumps(scene)), ADA, NOW)
    assert isinstance(found, Memory), found
    return found


def test_a_whole_scene_becomes_a_memory_with_all_of_it() -> None:
    """spec P2, P4, P6 ❶"""
    memory = read(
        {
            "action": "Chose the name",
            "actors": ["Hashi"],
            "when": ["2026-02-27", {"date": "Day7", "action": "Hashiに正式決定"}],
            "setting": "kitchen",
            "dialogue": ["Yes!"],
            "sensory": ["coffee"],
            "feeling": "proud",
            "importance": 0.8,
            "category": "social",
            "themes": ["names"],
            "emotions": ["pride", "joy"],
            "emotion": {"valence": 0.9, "trust": 0.5},
            "lesson": "ask early",
            "pinned": True,
        }
    )
    assert memory.scene.when == ("2026-02-27", DatedAction("Day7", "Hashiに正式決定"))
    assert (memory.scene.actors, memory.scene.dialogue, memory.scene.sensory) == (("Hashi",), ("Yes!",), ("coffee",))
    assert (memory.feeling, memory.importance, memory.category, memory.lesson) == ("proud", 0.8, "social", "ask early")
    assert (memory.themes, memory.emotions, memory.pinned) == (("names",), ("pride", "joy"), True)
    assert memory.emotion == EmotionVector(0.9, 0, 0, 0, 0, 0.5)
    assert memory.being_id == ADA.being_id


def test_a_new_memory_is_fresh_and_active_and_has_no_cluster() -> None:
    """spec P6 ❶ 3"""
    memory = read({"action": "Chose the name"})
    assert (memory.fresh, memory.status, memory.cluster_id, memory.session_count) == (True, "active", None, 0)


@for_each_row(
    ("given", "kept"), [(None, 0.5), (0, 0.0), (0.3, 0.3), (1, 1.0), (7, 1.0), (-3, 0.0), (1e300, 1.0), (-0.0001, 0.0)]
)
def test_importance_is_clamped_and_half_if_it_is_not_given(given: float | None, kept: float) -> None:
    """spec P6 ❶ 3: importance = clamp(0, 1, scene.importance ?? 0.5)."""
    assert read({"action": "a"} | ({} if given is None else {"importance": given})).importance == kept
    assert read({"action": "a", "importance": given}).importance == kept


def test_one_date_may_stand_by_itself() -> None:
    """spec P4: `when` is a list; a single string is what people write."""
    assert read({"action": "a", "when": "2026-02-27"}).scene.when == ("2026-02-27",)


def test_a_scene_may_stand_under_a_key_of_its_own() -> None:
    """spec P2: feeling and importance stand beside the scene."""
    memory = read({"scene": {"action": "a", "setting": "b"}, "feeling": "c", "importance": 0.9})
    assert (memory.scene.action, memory.scene.setting, memory.feeling, memory.importance) == ("a", "b", "c", 0.9)


def test_fields_that_nobody_knows_are_passed_over() -> None:
    """spec P6 ❶: a note is not a tool call; a model has written it."""
    assert read({"action": "a", "mood": "b", "actors": []}).scene.action == "a"


@for_each_row(
    "content",
    [
        "",
        "not JSON",
        "{",
        '{"action": "a"',
        "null",
        "3",
        '"action"',
        '[{"action": "a"}]',
        "{}",
        '{"action": ""}',
        '{"action": "  "}',
        '{"action": null}',
        '{"action": 3}',
        '{"action": "a", "actors": "Hashi"}',
        '{"action": "a", "when": [{"date": "2026-02-27"}]}',
        '{"action": "a", "when": [3]}',
        '{"action": "a", "importance": "much"}',
        '{"action": "a", "importance": NaN}',
        '{"action": "a", "importance": 1e999}',
        '{"action": "a", "category": "holiday"}',
        '{"action": "half \\ud800 a pair"}',
        '{"action": "a", "when": [{"date": "d", "action": "a", "\\ud800": 1}]}',
        '{"action": "a", "importance": ' + "9" * 5000 + "}",
        "[" * 100_000,
    ],
)
def test_a_note_that_cannot_be_read_says_why(content: str) -> None:
    """spec P6 ❶ 2: marked, and kept for self-repair; the reason can itself be stored."""
    scene = memory_or_fault_from_scene_note(note(content), ADA, NOW)
    assert isinstance(scene, str)
    assert scene
    assert scene.encode()


@for_each_row(
    ("told", "emotions", "vector"),
    [
        ('"emotions": ["Joy", "hunger", "sad"]', ("joy", "sadness"), None),
        ('"emotions": "pride"', ("pride",), None),
        ('"emotions": ["joy", "love", "pride", "fear"]', ("joy", "love", "pride"), None),
        ('"emotions": 3', (), None),
        ('"emotion": {"Valence": 0.5, "T": -1, "taste": 1}', (), EmotionVector(0.5, 0, 0, 0, 0, -1)),
        ('"emotion": {"valence": 2}', (), None),
        ('"emotion": {"valence": true}', (), None),
        ('"emotion": "good"', (), None),
    ],
)
def test_a_feeling_in_odd_spelling_is_read_and_nothing_else_of_the_note_is_lost(
    told: str, emotions: tuple[str, ...], vector: EmotionVector | None
) -> None:
    """ruling 21: the specification's own spelling of the axes has capitals."""
    scene = memory_or_fault_from_scene_note(note(f'{{"action": "Ann won", {told}}}'), ADA, NOW)
    assert not isinstance(scene, str)
    assert (scene.scene.action, scene.emotions, scene.emotion) == ("Ann won", emotions, vector)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["action", "actors", "when", "scene", "date", "importance", "emotion", "dialogue"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["action", "when", "actors", "importance", "emotion", "scene"]), JSON))
def test_no_json_makes_reading_a_note_fail(content: dict[str, Any]) -> None:
    """ruling 1: one bad note may not stop a patrol."""
    scene = memory_or_fault_from_scene_note(note(json.dumps(content)), ADA, NOW)
    if isinstance(scene, Memory):
        assert 0 <= scene.importance <= 1
        assert scene.scene.action.strip()


class Inbox:
    def __init__(self) -> None:
        self.notes: list[tuple[Scope, Note]] = []

    async def add_note(self, scope: Scope, note: Note) -> None:
        self.notes.append((scope, note))


async def test_a_note_waits_unread_in_its_beings_inbox() -> None:
    """spec P6 ❶, P1"""
    inbox = Inbox()
    added = (await add_note(inbox, ADA, '{"action": "a"}', now=NOW)).note
    assert inbox.notes == [(ADA, added)]
    assert (added.state, added.type, added.being_id, added.created_at) == ("unread", "scene", ADA.being_id, NOW)
