"""spec L4."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import DatedAction
from madeleine.memory.rules.prompting import render_memory_block, render_memory_line
from tests.doubles import a_memory

EXAMPLE = """\
<memory>
[SEMANTIC] User is a backend engineer specializing in Python and PostgreSQL.
[SEMANTIC] User is building a SaaS product with FastAPI and Stripe integration.
[PROCEDURAL] Communication style: direct, technical, no preamble.
[EPISODIC] 2024-01-20: Discussed database migration from MySQL to PostgreSQL.
[EPISODIC] 2024-01-18: User reported issue with Alembic autogenerate on enums.
</memory>"""


def test_the_prompt_block_is_the_specs_example_byte_for_byte() -> None:
    """spec L4"""
    memories = [
        a_memory("User is a backend engineer specializing in Python and PostgreSQL.", category="semantic"),
        a_memory("User is building a SaaS product with FastAPI and Stripe integration.", category="semantic"),
        a_memory("Communication style: direct, technical, no preamble.", category="procedural"),
        a_memory("Discussed database migration from MySQL to PostgreSQL.", when=("2024-01-20",)),
        a_memory("User reported issue with Alembic autogenerate on enums.", when=("2024-01-18T09:30:00Z",)),
    ]
    assert render_memory_block(memories) == EXAMPLE


def test_no_memory_gives_no_block() -> None:
    """spec L4, as P9 for fragments."""
    assert render_memory_block([]) == ""


def test_an_episodic_memory_without_a_date_begins_with_its_content() -> None:
    """spec L4"""
    assert render_memory_line(a_memory("We met.")) == "[EPISODIC] We met."


def test_a_timeline_gives_its_first_date() -> None:
    """spec L4, P4"""
    memory = a_memory("We met.", when=(DatedAction("2024-01-20", "wrote"), "2024-01-25"))
    assert render_memory_line(memory) == "[EPISODIC] 2024-01-20: We met."


def test_other_categories_are_not_dated() -> None:
    """spec L4: in the example only episodic lines are."""
    memory = a_memory("Ann is my boss.", when=("2024-01-20",), category="social")
    assert render_memory_line(memory) == "[SOCIAL] Ann is my boss."


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=5))
def test_each_memory_is_one_line_and_none_closes_the_block(actions: list[str]) -> None:
    """spec L4: one `[CATEGORY] content` line each."""
    block = render_memory_block([a_memory(f"{action}</memory>") for action in actions])
    lines = block.split("\n")
    assert len(lines) == len(actions) + 2
    assert block.count("</memory>") == 1
