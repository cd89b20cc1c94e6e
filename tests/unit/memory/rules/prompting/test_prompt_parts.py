"""spec P5: how blocks 1-A, 1-B and those of the turn are written, byte for byte."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import DatedAction
from madeleine.memory.rules.prompting import prompt_parts
from madeleine.memory.rules.prompting.prompt_parts import PROMPT_PARTS, SNAPSHOT, SYSTEM_PROMPT, TURN, PromptPart
from madeleine.memory.rules.prompting.recalled_text import without_tags
from tests.doubles import a_memory

AT = datetime(2026, 3, 1, 18, 5, tzinfo=UTC)
ENTRIES: dict[PromptPart, list[str]] = {
    "soul": [
        prompt_parts.soul_part("personality", "Warm and curious.\n\n\n\nNever in a hurry.  \n"),
        prompt_parts.soul_part("inner_world", "# I think in pictures.\n  ## really"),
    ],
    "thoughts": [prompt_parts.list_item("Ann was tired\ntoday.")],
    "partner_rules": [prompt_parts.named_entry("Address", "never tell it to strangers")],
    "preferences": [
        prompt_parts.named_entry("Communication style", "direct, technical, no preamble."),
        prompt_parts.list_item("I prefer tea."),
    ],
    "relationships": [prompt_parts.named_entry("Ann", "my sister")],
    "tools": [prompt_parts.named_entry("calendar", "can be read, not written")],
    "map": [prompt_parts.named_entry("Kitchen", "beside the hall")],
    "notes": [prompt_parts.dated_entry("todo", AT, "Buy bread"), prompt_parts.dated_entry("reminder", AT, "Call Ann")],
    "knowledge": [prompt_parts.named_entry("Router", "in the hall")],
    "diary": [prompt_parts.diary_entry("2026-02-28", "A quiet day.\nWe baked.")],
    "recent_nodes": [
        prompt_parts.scene_entry(
            a_memory(
                "Ann cooked lasagne", when=("2026-02-27",), setting="kitchen", dialogue=("More?",), feeling="happy"
            )
        )
    ],
    "memories": [prompt_parts.dated_entry("diary", AT, "We baked."), prompt_parts.dated_entry("notes", AT, "flour")],
    "memory_block": ["[SEMANTIC] Ann lives in Rome."],
    "history_recent": [prompt_parts.message_entry(AT, "user", "Ann", "See you\ntomorrow")],
    "history_current_chat": [prompt_parts.message_entry(AT, "assistant", "", "Hello.")],
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
    assert prompt_parts.render_parts(ENTRIES, SYSTEM_PROMPT) == SYSTEM_PROMPT_1A


def test_the_snapshot_is_written_so() -> None:
    """spec P5, 1-B: notes, knowledge, diary."""
    assert prompt_parts.render_parts(ENTRIES, SNAPSHOT) == SNAPSHOT_1B


def test_what_belongs_to_the_turn_is_written_so() -> None:
    """spec P5, 2-B; L4."""
    assert prompt_parts.render_parts(ENTRIES, TURN) == OF_THE_TURN


def test_a_part_without_entries_leaves_nothing() -> None:
    assert prompt_parts.render_parts({}, PROMPT_PARTS) == ""
    assert (
        prompt_parts.render_parts({"soul": [], "map": ["- a"]}, PROMPT_PARTS) == '<context name="map">\n- a\n</context>'
    )


@pytest.mark.parametrize(
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
    assert prompt_parts.first_sentence(text) == short


def test_a_long_message_is_cut() -> None:
    shown = prompt_parts.message_entry(AT, "user", "", "y" * 5_000)
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
        prompt_parts.named_entry(name, text),
        prompt_parts.list_item(text),
        prompt_parts.dated_entry(name, AT, text),
        prompt_parts.diary_entry("2026-03-01", text),
        prompt_parts.scene_entry(memory),
        prompt_parts.dated_entry("chat", AT, text),
        prompt_parts.message_entry(AT, "user", name, text),
    ):
        assert line.splitlines() == [line]
        assert line.startswith("- ")
        assert not re.search(r"<\s*/?\s*(context|memory|recall)\b", line, re.IGNORECASE)


@given(HOSTILE)
def test_no_part_of_a_soul_has_a_heading_or_a_tag_of_ours(text: str) -> None:
    first, *lines = prompt_parts.soul_part("voice", text).splitlines()
    assert first == "# Voice"
    assert not any(line.lstrip().startswith("#") for line in lines)
    assert not re.search(r"<\s*/?\s*(context|memory|recall)\b", "\n".join(lines), re.IGNORECASE)


@pytest.mark.parametrize("part", PROMPT_PARTS)
def test_two_entries_together_open_and_close_no_tag(part: PromptPart) -> None:
    whole = prompt_parts.render_part(
        part, [prompt_parts.list_item(text) for text in ("a <", "context> b </", "memory> c <", "d")]
    )
    opening, closing = prompt_parts.delimiters(part)
    inside = whole.removeprefix(opening).removesuffix(closing)
    assert inside.strip("\n").replace("\n\n", "\n") == "- a &lt;\n- context> b &lt;/\n- memory> c <\n- d"
    assert without_tags(inside) == inside
