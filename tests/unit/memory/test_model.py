"""spec P2, P4: the scene's texts and its moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import (
    DatedAction,
    Scene,
    content_hash,
    date_of_timeline_entry,
    embedded_text,
    parse_iso_moment_or_none,
    scene_to_text,
    start_of_first_dated_timeline_entry,
)
from madeleine.memory.searched_texts import timeline_as_search_text
from tests.doubles import NOW, a_memory
from tests.rows import for_each_row


def test_a_scene_reads_as_in_the_specs_example() -> None:
    """spec P4: `YYYY-MM-DD — setting — action — "first dialogue line" — (feeling)`."""
    scene = Scene(
        action="We shared a bowl of ramen",
        actors=("Hashi", "Ada"),
        when=("2026-02-27",),
        setting="a small shop by the station",
        dialogue=("One more?", "Always."),
        sensory=("steam",),
    )
    assert scene_to_text(scene, "I felt at home") == (
        '2026-02-27 — a small shop by the station — We shared a bowl of ramen — "One more?" — (I felt at home)'
    )


@for_each_row(
    ("scene", "feeling", "text"),
    [
        (Scene(action="A walk"), "", "A walk"),
        (Scene(action="A walk", setting="park"), "", "park — A walk"),
        (Scene(action="A walk"), "calm", "A walk — (calm)"),
        (Scene(action="A walk", when=(DatedAction("2026-02-27", "set out"),)), "", "2026-02-27 — A walk"),
        (Scene(action="A walk", when=("2026-02-27T18:30:00Z",)), "", "2026-02-27 — A walk"),
        (Scene(action="A walk", when=("Day7", "2026-02-27")), "", "Day7 — A walk"),
    ],
)
def test_parts_that_a_scene_does_not_have_are_left_out_of_its_text(scene: Scene, feeling: str, text: str) -> None:
    """spec P4"""
    assert scene_to_text(scene, feeling) == text


def test_the_text_that_is_embedded_is_when_action_and_feeling() -> None:
    """spec P4: neither setting, dialogue, sensory nor actors."""
    scene = Scene(
        action="Chose the name",
        actors=("Hashi",),
        when=("2026-02-26", DatedAction("2026-02-27T09:00", "slept on it")),
        setting="kitchen",
        dialogue=("Yes!",),
        sensory=("coffee",),
    )
    assert embedded_text(scene, "proud") == "2026-02-26 Chose the name proud"


def test_a_timeline_of_dated_actions_alone_is_embedded_whole() -> None:
    """spec P4: behind a plain date they are what was absorbed, which would drown what the memory says itself."""
    scene = Scene(action="Chose the name", when=(DatedAction("2026-02-27T09:00", "slept on it"),))
    assert embedded_text(scene, "") == "2026-02-27 slept on it Chose the name"


def test_a_scene_with_an_action_alone_embeds_that_action() -> None:
    """spec P4"""
    assert a_memory("Chose the name").embedded_text == "Chose the name"


def test_what_is_not_embedded_does_not_change_the_content_hash() -> None:
    """spec L1: vectors are cached by the hash of the text that is embedded."""
    plain = a_memory("Chose the name", feeling="proud")
    rich = a_memory("Chose the name", feeling="proud", setting="kitchen", dialogue=("Yes!",), lesson="ask early")
    assert plain.content_hash == rich.content_hash
    assert plain.content_hash != a_memory("Chose the name", feeling="tired").content_hash


def test_the_content_hash_is_sha_256_in_hex() -> None:
    """The published digest of "abc" (FIPS 180-2)."""
    assert content_hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@for_each_row(
    ("text", "moment"),
    [
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
        ("2024-01-31T18:30", datetime(2024, 1, 31, 18, 30, tzinfo=UTC)),
        ("2024-01-31 18:30:05.5", datetime(2024, 1, 31, 18, 30, 5, 500_000, tzinfo=UTC)),
        ("2024-01-31T18:30:00Z", datetime(2024, 1, 31, 18, 30, tzinfo=UTC)),
        ("2024-01-31T23:30:00-02:00", datetime(2024, 2, 1, 1, 30, tzinfo=UTC)),
        ("2024-01-01T08:00:00+09:00", datetime(2023, 12, 31, 23, tzinfo=UTC)),
        ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31", datetime(9999, 12, 31, tzinfo=UTC)),
    ],
)
def test_an_iso_date_or_time_is_a_moment_in_utc(text: str, moment: datetime) -> None:
    """spec P2: all times are aware, in UTC; naive ones are taken as UTC."""
    found = parse_iso_moment_or_none(text)
    assert found == moment
    assert found.utcoffset() == timedelta(0)


@for_each_row(
    "text",
    [
        "", " ", "yesterday", "Day7", "20240131", "2024-W05-3", "24-01-31",
        "2023-02-29", "2024-02-30", "2024-13-01", "2024-00-10", "2024-01-00", "2024-01-31T25:00", "2024-01-31T18:61",
        "2024-01-31 in the evening", " 2024-01-31", "2024-01-31T", "٢٠٢٤-٠١-٣١",
    ],
)  # fmt: skip
def test_what_is_not_an_iso_date_is_no_moment(text: str) -> None:
    """spec P4: `when` may be any string."""
    assert parse_iso_moment_or_none(text) is None


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_leaves_the_calendar_on_its_way_to_utc_is_no_moment(text: str) -> None:
    """It raised OverflowError, so that a store, a search and a whole patrol failed on one such date."""
    assert parse_iso_moment_or_none(text) is None
    assert date_of_timeline_entry(text) == text


@given(st.text(max_size=40) | st.from_regex(r"\d{4}-\d{2}-\d{2}.{0,20}", fullmatch=True))
def test_no_text_makes_reading_a_moment_fail(text: str) -> None:
    """spec P4: `when` may be any string."""
    moment = parse_iso_moment_or_none(text)
    assert moment is None or moment.tzinfo is UTC


def test_a_scene_happened_at_its_first_date_that_can_be_read() -> None:
    """spec P2"""
    when = ("Day7", DatedAction("2024-02-30", "no such day"), DatedAction("2024-03-01", "signed"), "2020-01-01")
    assert start_of_first_dated_timeline_entry(when, NOW) == datetime(2024, 3, 1, tzinfo=UTC)


def test_a_scene_without_a_date_happened_when_it_was_stored() -> None:
    """spec P2"""
    assert start_of_first_dated_timeline_entry((), NOW) == NOW
    assert start_of_first_dated_timeline_entry(("Day7",), NOW) == NOW


def test_search_sees_dated_actions_as_the_spec_writes_them() -> None:
    """spec P11: `"Day7"` or `"Hashi"` match `{"date":"Day7","action":"Hashiに正式決定"}`."""
    text = timeline_as_search_text(("2026-01-02", DatedAction("Day7", "Hashiに正式決定")))
    assert text == '["2026-01-02", {"date": "Day7", "action": "Hashiに正式決定"}]'
