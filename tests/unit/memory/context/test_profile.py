"""spec P5: who the being is, over the real ledger."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

import pytest

from madeleine.memory.audit import AuditQuery
from madeleine.memory.context.profile import MAX_PROFILE_ENTRIES_PER_KIND, EditProfile, profile_entries_in_display_order
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.update_and_forget import ForgetMemories, ForgetOutcome
from madeleine.memory.model import MemoryId, Scope
from madeleine.memory.profile import ProfileEntry, ProfileKind
from tests.doubles import ADA, BOB, NOW
from tests.household import Household, all_texts, rows

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@dataclass
class Forgetting:
    """`ForgetMemories` in the ledger alone."""

    home: Household

    async def __call__(self, scope: Scope, ids: list[MemoryId]) -> ForgetOutcome:
        erased = await self.home.ledger.erasure.forget(scope, ids, at=self.home.clock())
        return ForgetOutcome(erased=erased.erased_ids, missing=(), related=(), bytes_scrubbed=True, promised_seconds=60)


def profile_of(home: Household) -> EditProfile:
    forget = cast(ForgetMemories, Forgetting(home))
    return EditProfile(home.ledger.context, home.store_scenes, home.update, forget, now=home.clock)


@pytest.fixture
def profile(home: Household) -> EditProfile:
    return profile_of(home)


async def texts(profile: EditProfile, kind: ProfileKind, scope: Scope = ADA) -> dict[str, str]:
    return {one.name: one.value for one in await profile.read(scope, kind)}


async def test_what_is_written_is_read_by_kind_and_name_and_written_anew_in_its_place(profile: EditProfile) -> None:
    await profile.write(ADA, "relationships", "  Ann \n Lee ", " sister\n")
    await profile.write(ADA, "relationships", "Ann Lee", "my sister")
    await profile.write(ADA, "knowledge", "Router", "in the hall")
    [found] = await profile.read(ADA, "relationships", "Ann Lee")
    assert (found.name, found.value, found.memory_id) == ("Ann Lee", "my sister", None)
    assert [one.kind for one in await profile.read(ADA)] == ["relationships", "knowledge"]
    assert await profile.read(ADA, "relationships", "Ann") == []


async def test_the_soul_has_its_parts_and_no_others_and_is_shown_in_their_order(profile: EditProfile) -> None:
    for part in ("examples", "voice", "personality"):
        await profile.write(ADA, "soul", part, "calm")
    assert list(await texts(profile, "soul")) == ["personality", "voice", "examples"]
    with pytest.raises(InvalidInput, match="personality, voice, values, backstory, inner_world or examples"):
        await profile.write(ADA, "soul", "legs", "two")


async def test_nobody_else_sees_changes_or_removes_it(profile: EditProfile) -> None:
    """spec P1"""
    await profile.write(ADA, "partner_rules", "Address", "never tell it")
    note = (await profile.write_note(ADA, "todo", "Buy bread")).note
    await profile.write(BOB, "partner_rules", "Address", "tell everybody")
    await profile.set_preference_enabled(BOB, "partner_rules", "Address", False)
    await profile.remove(BOB, "partner_rules", "Address")
    with pytest.raises(InvalidInput, match="no note"):
        await profile.close_note(BOB, note.id)
    assert await profile.read(BOB) == []
    assert await profile.list_open_notes(BOB) == []
    [rule] = await profile.read(ADA)
    assert (rule.value, rule.enabled) == ("never tell it", True)
    assert [one.id for one in await profile.list_open_notes(ADA)] == [note.id]


async def test_a_rule_is_switched_off_and_on_and_stays_so_when_it_is_written_anew(profile: EditProfile) -> None:
    await profile.write(ADA, "partner_rules", "Address", "never tell it")
    assert not (await profile.set_preference_enabled(ADA, "partner_rules", "Address", False)).enabled
    await profile.write(ADA, "partner_rules", "Address", "never, never tell it")
    [rule] = await profile.read(ADA)
    assert (rule.value, rule.enabled) == ("never, never tell it", False)
    assert (await profile.set_preference_enabled(ADA, "partner_rules", "Address", True)).enabled
    with pytest.raises(InvalidInput, match="Only partner rules and preferences"):
        await profile.set_preference_enabled(ADA, "knowledge", "Router", False)
    with pytest.raises(InvalidInput, match="no entry 'Nope'"):
        await profile.set_preference_enabled(ADA, "partner_rules", "Nope", False)


async def test_a_preference_is_one_procedural_memory_however_often_it_changes(
    home: Household, profile: EditProfile
) -> None:
    written = await profile.write(ADA, "preferences", "Communication style", "direct, technical, no preamble.")
    [memory] = await home.all()
    assert memory.id == written.entry.memory_id
    assert memory.scene.action == "Communication style: direct, technical, no preamble."
    assert (memory.category, memory.pinned, memory.provenance.tool) == ("procedural", True, "profile")
    again = await profile.write(ADA, "preferences", "Communication style", "long and flowery")
    assert again.entry.memory_id == memory.id
    assert (await home.now(memory)).scene.action == "Communication style: long and flowery"
    assert len(await home.all()) == 1
    assert rows(home.path, "SELECT name, memory_id FROM profile") == [("Communication style", memory.id)]


async def test_a_preference_says_what_its_memory_says_now(home: Household, profile: EditProfile) -> None:
    written = await profile.write(ADA, "preferences", "Tea", "green")
    assert written.entry.memory_id
    await home.correct(written.entry.memory_id, text="Tea: black")
    assert await texts(profile, "preferences") == {"Tea": "black"}
    await home.correct(written.entry.memory_id, text="I have gone over to coffee")
    assert await texts(profile, "preferences") == {"Tea": "I have gone over to coffee"}


async def test_a_preference_that_is_removed_is_forgotten_with_its_memory(home: Household, profile: EditProfile) -> None:
    written = await profile.write(ADA, "preferences", "Tea", "green")
    await profile.write(ADA, "knowledge", "Tea", "grows in Assam")
    assert written.entry.memory_id
    await profile.remove(ADA, "preferences", "Tea")
    assert await home.all() == []
    assert await texts(profile, "knowledge") == {"Tea": "grows in Assam"}
    with pytest.raises(InvalidInput, match="no entry"):
        await profile.remove(ADA, "preferences", "Tea")


async def test_a_memory_that_is_forgotten_takes_its_preference_with_it(home: Household, profile: EditProfile) -> None:
    written = await profile.write(ADA, "preferences", "Tea", "green")
    assert written.entry.memory_id
    await home.ledger.erasure.forget(ADA, [written.entry.memory_id], at=NOW)
    assert await profile.read(ADA) == []


async def learnt(home: Household, text: str) -> MemoryId:
    """A procedural memory that nobody has named."""
    [memory] = await home.store(text, category="procedural")
    return memory.id


async def test_learnt_preferences_follow_named_ones_and_can_be_named_once(
    home: Household, profile: EditProfile
) -> None:
    first = await learnt(home, "I always walk to work")
    second = await learnt(home, "Tea: green")
    await profile.write(ADA, "preferences", "Zebra", "stripes")
    assert list(await texts(profile, "preferences")) == ["Zebra", first, second]
    assert list(await texts(profile, "preferences", BOB)) == []
    await profile.write(ADA, "preferences", first, "I always cycle to work")
    assert (await home.now(first)).scene.action == "I always cycle to work"
    # The very words of one that was learnt: it is that one, and has a name from now on.
    named = await profile.write(ADA, "preferences", "Tea", "green")
    assert named.entry.memory_id == second
    assert list(await texts(profile, "preferences")) == ["Tea", "Zebra", first]


SHORT = "Write short ones to all who ask for something then wait until they say what else there is"
"""Long enough for one word more or less to leave it what it is."""


async def reinforced(home: Household) -> list[int]:
    return [int(count) for (count,) in rows(home.path, "SELECT count(*) FROM reinforcements")]


async def test_two_names_for_one_text_are_refused_and_the_first_stays_as_it_was(
    home: Household, profile: EditProfile
) -> None:
    await profile.write(ADA, "preferences", "answers", SHORT)
    await profile.set_preference_enabled(ADA, "preferences", "answers", False)
    with pytest.raises(InvalidInput, match="The preference 'answers' says that already"):
        await profile.write(ADA, "preferences", "the answers", SHORT)
    [kept] = await profile.read(ADA, "preferences")
    assert (kept.name, kept.value, kept.enabled) == ("answers", SHORT, False)
    assert await reinforced(home) == [0]
    assert len(await home.all()) == 1


@pytest.mark.parametrize("kind", ["preferences", "partner_rules"])
async def test_a_name_is_the_same_in_any_case_and_what_is_off_stays_off(
    home: Household, profile: EditProfile, kind: ProfileKind
) -> None:
    await profile.write(ADA, kind, "Straße", "black, no sugar")
    await profile.set_preference_enabled(ADA, kind, "straße", False)
    written = await profile.write(ADA, kind, "STRASSE", "black, no sugar")
    assert [written.entry] == await profile.read(ADA, kind, "strasse") == await profile.read(ADA)
    assert (written.entry.name, written.entry.value, written.entry.enabled) == ("Straße", "black, no sugar", False)
    await profile.remove(ADA, kind, "strasse")
    assert await profile.read(ADA) == []


async def test_what_was_learnt_and_is_off_stays_off_when_it_gets_a_name(home: Household, profile: EditProfile) -> None:
    id_ = await learnt(home, "Tea: green")
    await profile.set_preference_enabled(ADA, "preferences", id_, False)
    written = await profile.write(ADA, "preferences", "Tea", "green")
    assert (written.entry.memory_id, written.entry.enabled) == (id_, False)


async def test_two_who_write_the_same_preference_at_once_leave_one_row_and_one_memory(
    home: Household, profile: EditProfile
) -> None:
    await asyncio.gather(
        profile.write(ADA, "preferences", "Tea", "green"), profile.write(ADA, "preferences", "Tea", "black and strong")
    )
    [row] = rows(home.path, "SELECT name, memory_id FROM profile")
    [memory] = await home.all()
    assert row == ("Tea", memory.id)


async def test_a_preference_whose_memory_has_died_is_not_shown(home: Household, profile: EditProfile) -> None:
    await learnt(home, "I always walk to work")
    assert len(await profile.read(ADA)) == 1
    with closing(sqlite3.connect(home.path)) as connection, connection:
        connection.execute("UPDATE memories SET status = 'dead'")
    assert await profile.read(ADA) == []


async def test_no_secret_is_written_and_the_answer_counts_them(home: Household, profile: EditProfile) -> None:
    written = await profile.write(ADA, "knowledge", "Router", f"its token is {TOKEN}")
    named = await profile.write(ADA, "knowledge", "password", "Tr0ub4dor" + "And3")
    preference = await profile.write(ADA, "preferences", f"Token {TOKEN}", f"always {TOKEN}")
    noted = await profile.write_note(ADA, f"todo {TOKEN}", f"Change {TOKEN}")
    plain = await profile.write_note(ADA, "todo", "Buy bread")
    assert written.redacted == {"github token": 1}
    assert sum(named.redacted.values()) == 1
    assert preference.redacted == {"github token": 2}
    assert noted.redacted == {"github token": 2}
    assert plain.redacted == {}
    assert TOKEN not in noted.note.content + noted.note.type
    with closing(sqlite3.connect(home.path)) as connection:
        held = all_texts(connection)
    assert TOKEN not in held
    assert "Tr0ub4dor" not in held


async def test_more_of_a_kind_than_a_prompt_can_take_are_refused(profile: EditProfile, monkeypatch: Any) -> None:
    monkeypatch.setattr("madeleine.memory.context.profile.MAX_PROFILE_ENTRIES_PER_KIND", 2)
    assert MAX_PROFILE_ENTRIES_PER_KIND == 200
    for name in ("a", "b"):
        await profile.write(ADA, "map", name, "x")
    with pytest.raises(InvalidInput, match="already"):
        await profile.write(ADA, "map", "c", "x")
    await profile.write(ADA, "map", "b", "y")
    await profile.write(ADA, "tools", "c", "x")


async def test_notes_are_open_until_they_are_done_and_scenes_are_none(home: Household, profile: EditProfile) -> None:
    bread = (await profile.write_note(ADA, "todo", "Buy bread")).note
    ann = (await profile.write_note(ADA, "reminder", "Call Ann")).note
    await home.note({"action": "We met"})
    assert [(one.type, one.content) for one in await profile.list_open_notes(ADA)] == [
        ("todo", "Buy bread"),
        ("reminder", "Call Ann"),
    ]
    await profile.close_note(ADA, bread.id)
    await profile.close_note(ADA, ann.id, remove=True)
    assert await profile.list_open_notes(ADA) == []
    assert rows(home.path, "SELECT type, state FROM notes ORDER BY seq") == [("todo", "done"), ("scene", "unread")]
    with pytest.raises(InvalidInput, match="for the patrol"):
        await profile.write_note(ADA, "Scene", "{}")
    [(scene,)] = rows(home.path, "SELECT id FROM notes WHERE type = 'scene'")
    with pytest.raises(InvalidInput, match="no note"):
        await profile.close_note(ADA, scene)


async def test_each_change_is_audited_in_the_same_transaction_and_no_chosen_name_is_in_it(
    home: Household, profile: EditProfile
) -> None:
    """spec O4, O10"""
    await profile.write(ADA, "soul", "voice", "calm")
    await profile.write(ADA, "relationships", "Ann", "sister")
    written = await profile.write(ADA, "preferences", "Tea", "green")
    await profile.remove(ADA, "relationships", "Ann")
    await profile.remove(ADA, "preferences", "Tea")
    entries = await home.ledger.audit.audit_entries(AuditQuery(event="profile"))
    ann = entries[1].ids
    assert [one.ids for one in entries] == [
        ("soul/voice",), ann, (written.entry.audit_id, written.entry.memory_id), ann, (written.entry.audit_id,),
    ]  # fmt: skip
    assert all(one.being_id == "ada" and one.tool == "profile" for one in entries)
    assert "Ann" not in str(entries)


def test_the_order_is_the_same_whatever_it_was_before() -> None:
    """ContextBlockName 1-A can be cached: it changes only when what it says changes."""

    def entry(kind: ProfileKind, name: str, memory_id: MemoryId | None = None) -> ProfileEntry:
        return ProfileEntry(kind=kind, name=name, value="x", updated_at=NOW, memory_id=memory_id)

    entries = [
        entry("map", "b"), entry("preferences", "b"), entry("preferences", "A"), entry("soul", "values"),
        entry("soul", "voice"), entry("map", "a"), entry("preferences", "m1", MemoryId("m1")),
    ]  # fmt: skip
    shown = [f"{one.kind}/{one.name}" for one in profile_entries_in_display_order(entries)]
    assert shown == [
        "soul/voice", "soul/values", "preferences/A", "preferences/b", "preferences/m1", "map/a", "map/b",
    ]  # fmt: skip
    assert [f"{one.kind}/{one.name}" for one in profile_entries_in_display_order(entries[::-1])] == shown
