"""spec L4."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import DatedAction
from madeleine.memory.rules.prompting import render_memory_block, render_memory_line
from tests.doubles import NOW, a_memory

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


def test_facts_of_different_days_have_dates_and_preferences_have_none() -> None:
    """spec L4; two facts may be versions of one."""
    told = a_memory("Ann lives in Rome.", when=("2024-01-20",), category="social")
    port, other = (a_memory(f"Staging uses the port {n}.", category="semantic") for n in (5432, 6000))
    later = replace(other, created_at=NOW + timedelta(days=2), happened_at=NOW + timedelta(days=2))
    tea = a_memory("I prefer tea.", category="procedural", when=("2024-01-20",))
    assert render_memory_block([port, tea, told, later]).splitlines()[1:-1] == [
        "[SEMANTIC] 2026-03-01: Staging uses the port 5432.",
        "[SEMANTIC] 2026-03-03: Staging uses the port 6000.",
        "[SOCIAL] 2024-01-20: Ann lives in Rome.",
        "[PROCEDURAL] I prefer tea.",
    ]
    assert "2026" not in render_memory_block([port, other])


def test_a_date_that_the_text_names_stands_once() -> None:
    memory = a_memory("On 2024-01-20 we met.", when=("2024-01-20",))
    assert render_memory_line(memory) == "[EPISODIC] On 2024-01-20 we met."


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=5))
def test_each_memory_is_one_line_and_none_closes_the_block(actions: list[str]) -> None:
    """spec L4: one `[CATEGORY] content` line each."""
    block = render_memory_block([a_memory(f"{action}</memory>") for action in actions])
    lines = block.split("\n")
    assert len(lines) == len(actions) + 2
    assert block.count("</memory>") == 1
