"""The `<memory>` block for a prompt (spec L4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from madeleine.memory.model import Category, DatedAction, Memory, when_date
from madeleine.memory.rules.prompting.fragments import quoted

RETOLD, RETOLD_CHARS = 5, 200
"""Of a long timeline a recall shows the last entries, and of each the beginning; recall_memory shows all."""

_SHOWN: tuple[Category, ...] = ("semantic", "social", "procedural", "working", "episodic")


def prompt_line(memory: Memory) -> str:
    """`[CATEGORY] content`; an episodic memory with a date begins with it, as in the spec's example."""
    dated = f"{when_date(memory.scene.when[0])}: " if memory.category == "episodic" and memory.scene.when else ""
    return f"[{memory.category.upper()}] {quoted(dated + memory.scene.action)}"


def in_prompt_order(memories: Sequence[Memory]) -> list[Memory]:
    """As the spec's example has them: what is known, how to act, then what happened, the latest first; the best first
    within what has no order in time."""

    def place(memory: Memory) -> tuple[int, float]:
        dated = memory.category == "episodic"
        return _SHOWN.index(memory.category), -memory.happened_at.timestamp() if dated else 0.0

    return sorted(memories, key=place)


def all_said(memory: Memory) -> str:
    """Everything of a memory that a recall may say, in whatever format: what its token budget is spent on."""
    said = (prompt_line(memory), quoted(memory.feeling), memory.lesson, *retold(memory))
    return "\n".join(part for part in said if part)


def retold(memory: Memory) -> tuple[str, ...]:
    """What the memory has absorbed or lists by day: its latest entries, each a line, cut."""
    entries = [item for item in memory.scene.when if isinstance(item, DatedAction)][-RETOLD:]
    return tuple(f"{when_date(item)}: {item.action}"[:RETOLD_CHARS] for item in entries)


def prompt_block(memories: Iterable[Memory]) -> str:
    """One line a memory between `<memory>` and `</memory>`; "" for none."""
    lines = [prompt_line(memory) for memory in memories]
    return "\n".join(["<memory>", *lines, "</memory>"]) if lines else ""
