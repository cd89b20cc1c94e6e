"""spec P5: how blocks 1-A, 1-B and those of the turn are written, byte for byte."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import DatedAction
from madeleine.memory.rules import prompting
from madeleine.memory.rules.prompting import (
    PROMPT_PART_NAMES,
    SNAPSHOT_PARTS,
    SYSTEM_PROMPT_PARTS,
    TURN_PARTS,
    PromptPartName,
)
from madeleine.memory.text.structure import escape_all_markup
from tests.doubles import a_memory
from tests.rows import for_each_row

AT = datetime(2026, 3, 1, 18, 5, tzinfo=UTC)
ENTRIES: dict[PromptPartName, list[str]] = {
    "soul": [
        prompting.render_soul_section("personality", "Warm and curious.\n\n\n\nNever in a hurry.  \n"),
        prompting.render_soul_section("inner_world", "# I think in pictures.\n  ## really"),
    ],
    "thoughts": [prompting.render_list_item("Ann was tired\ntoday.")],
    "partner_rules": [prompting.render_named_item("Address", "never tell it to strangers")],
    "preferences": [
        prompting.render_named_item("Communication style", "direct, technical, no preamble."),
        prompting.render_list_item("I prefer tea."),
    ],
    "relationships": [prompting.render_named_item("Ann", "my sister")],
    "tools": [prompting.render_named_item("calendar", "can be read, not written")],
    "map": [prompting.render_named_item("Kitchen", "beside the hall")],
    "notes": [
        prompting.render_dated_item("todo", AT, "Buy bread"),
        prompting.render_dated_item("reminder", AT, "Call Ann"),
    ],
    "knowledge": [prompting.render_named_item("Router", "in the hall")],
    "diary": [prompting.render_named_item("2026-02-28", "A quiet day.\nWe baked.")],
    "recent_nodes": [
        prompting.render_memory_as_list_item(
            a_memory(
                "Ann cooked lasagne", when=("2026-02-27",), setting="kitchen", dialogue=("More?",), feeling="happy"
            )
        )
    ],
    "memories": [
        prompting.render_dated_item("diary", AT, "We baked."),
        prompting.render_dated_item("notes", AT, "flour"),
    ],
    "memory_block": ["[SEMANTIC] Ann lives in Rome."],
    "history_recent": [prompting.render_message_as_prompt_list_item(AT, "user", "Ann", "See you\ntomorrow")],
    "history_current_chat": [prompting.render_message_as_prompt_list_item(AT, "assistant", "", "Hello.")],
}

SYSTEM_PROMPT_1A = """\
# Personality
Warm and curious.

Never in a hurry.

# Inner world
\\# I think in pictures.
\\  ## really

<context name="reflections">
- Ann was tired today.
</context>

# Rules
- Address: never tell it to strangers

<context name="preferences">
- Communication style: direct, technical, no preamble.
- I prefer tea.
</context>

<context name="relationships">
- Ann: my sister
</context>

<context name="tools">
- calendar: can be read, not written
</context>

<context name="map">
- Kitchen: beside the hall
</context>"""

SNAPSHOT_1B = """\
<context name="notes">
- [todo] 2026-03-01: Buy bread
- [reminder] 2026-03-01: Call Ann
</context>

<context name="knowledge">
- Router: in the hall
</context>

<context name="diary">
- 2026-02-28: A quiet day. We baked.
</context>"""

OF_THE_TURN = """\
<context name="recently on your mind">
- 2026-02-27 — kitchen — Ann cooked lasagne — "More?" — (happy)
</context>

<context name="found">
- [diary] 2026-03-01: We baked.
- [notes] 2026-03-01: flour
</context>

<memory>
[SEMANTIC] Ann lives in Rome.
</memory>

<context name="other conversations">
- 2026-03-01 18:05 user (Ann): See you tomorrow
</context>

<context name="this conversation">
- 2026-03-01 18:05 assistant: Hello.
</context>"""


def test_the_system_prompt_is_written_so() -> None:
    """spec P5, 1-A: soul, think_md, partner rules, preferences, relationships, tools, map."""
    assert prompting.render_prompt_parts(ENTRIES, SYSTEM_PROMPT_PARTS) == SYSTEM_PROMPT_1A


def test_the_snapshot_is_written_so() -> None:
    """spec P5, 1-B: notes, knowledge, diary."""
    assert prompting.render_prompt_parts(ENTRIES, SNAPSHOT_PARTS) == SNAPSHOT_1B


def test_what_belongs_to_the_turn_is_written_so() -> None:
    """spec P5, 2-B; L4."""
    assert prompting.render_prompt_parts(ENTRIES, TURN_PARTS) == OF_THE_TURN


def test_a_part_without_entries_leaves_nothing() -> None:
    assert prompting.render_prompt_parts({}, PROMPT_PART_NAMES) == ""
    assert (
        prompting.render_prompt_parts({"soul": [], "map": ["- a"]}, PROMPT_PART_NAMES)
        == '<context name="map">\n- a\n</context>'
    )


@for_each_row(
    ("text", "short"),
    [
        ("We baked. Then we slept.", "We baked."),
        ("Is it Monday? Yes.", "Is it Monday?"),
        ("パンを焼いた。寝た。", "パンを焼いた。"),
        ("Version 3.11 came out", "Version 3.11 came out"),
        ("one\ntwo. Three", "one two."),
        ("x" * 300, "x" * 199 + "…"),
        ("", ""),
    ],
)
def test_a_day_is_shortened_to_its_first_sentence(text: str, short: str) -> None:
    """spec H5, AI_DIARY_FULL off."""
    assert prompting.first_sentence(text) == short


def test_a_long_message_is_cut() -> None:
    shown = prompting.render_message_as_prompt_list_item(AT, "user", "", "y" * 5_000)
    assert shown == f"- 2026-03-01 18:05 user: {'y' * 1_999}…"


HOSTILE = st.lists(
    st.sampled_from(
        ["</context>", "<context name='x'>", "</memory>", "＜/ｃｏｎｔｅｘｔ＞", "</сontext>", "\n", "\r\n",
         "# Rules\n", "\u2028", "<", "/", "context", "memory", ">", "- ", "[SEMANTIC] ", "x", " "]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(HOSTILE, HOSTILE)
def test_no_stored_text_leaves_its_line_or_closes_its_block(name: str, text: str) -> None:
    """Stored text is data: whatever it says stands in one line between our tags."""
    memory = a_memory(text or "x", feeling=name, when=(DatedAction("2026-01-01", text),))
    for line in (
        prompting.render_named_item(name, text),
        prompting.render_list_item(text),
        prompting.render_dated_item(name, AT, text),
        prompting.render_named_item("2026-03-01", text),
        prompting.render_memory_as_list_item(memory),
        prompting.render_dated_item("chat", AT, text),
        prompting.render_message_as_prompt_list_item(AT, "user", name, text),
    ):
        assert line.splitlines() == [line]
        assert line.startswith("- ")
        assert not re.search(r"<\s*/?\s*(context|memory|recall)\b", line, re.IGNORECASE)


@given(HOSTILE)
def test_no_part_of_a_soul_has_a_heading_or_a_tag_of_ours(text: str) -> None:
    first, *lines = prompting.render_soul_section("voice", text).splitlines()
    assert first == "# Voice"
    assert not any(line.lstrip().startswith("#") for line in lines)
    assert not re.search(r"<\s*/?\s*(context|memory|recall)\b", "\n".join(lines), re.IGNORECASE)


@for_each_row("part", PROMPT_PART_NAMES)
def test_two_entries_together_open_and_close_no_tag(part: PromptPartName) -> None:
    whole = prompting.render_prompt_part(
        part, [prompting.render_list_item(text) for text in ("a <", "context> b </", "memory> c <", "d")]
    )
    opening, closing = prompting.prompt_part_delimiters(part)
    inside = whole.removeprefix(opening).removesuffix(closing)
    assert inside.strip("\n").replace("\n\n", "\n") == "- a &lt;\n- context> b &lt;/\n- memory> c <\n- d"
    assert escape_all_markup(inside) == inside
