"""The `<memory>` block for a prompt (spec L4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from madeleine.memory.model import Category, DatedAction, Memory, when_date
from madeleine.memory.rules.prompting.fragments import quoted

TIMELINE_ENTRIES, TIMELINE_CHARS = 5, 200
"""A recall shows the last entries of a long timeline, each truncated; recall_memory shows all."""

_ORDER: tuple[Category, ...] = ("semantic", "social", "procedural", "working", "episodic")


def memory_line(memory: Memory) -> str:
    """`[CATEGORY] content`; an episodic memory with a date begins with it, as in the spec's example."""
    dated = f"{when_date(memory.scene.when[0])}: " if memory.category == "episodic" and memory.scene.when else ""
    return f"[{memory.category.upper()}] {quoted(dated + memory.scene.action)}"


def in_prompt_order(memories: Sequence[Memory]) -> list[Memory]:
    """The order of the spec's example: facts, behaviour, then events, latest first. Within a category without an order
    in time the given order stays."""

    def place(memory: Memory) -> tuple[int, float]:
        dated = memory.category == "episodic"
        return _ORDER.index(memory.category), -memory.happened_at.timestamp() if dated else 0.0

    return sorted(memories, key=place)


def recallable_text(memory: Memory) -> str:
    """All text of a memory that a recall may return, in any format: an upper bound for its token cost."""
    texts = (memory_line(memory), quoted(memory.feeling), memory.lesson, *timeline_lines(memory))
    return "\n".join(filter(None, texts))


def timeline_lines(memory: Memory) -> tuple[str, ...]:
    """The latest dated actions of a memory, one truncated line each."""
    entries = [item for item in memory.scene.when if isinstance(item, DatedAction)][-TIMELINE_ENTRIES:]
    return tuple(f"{when_date(item)}: {item.action}"[:TIMELINE_CHARS] for item in entries)


def memory_block_text(memories: Iterable[Memory]) -> str:
    """One line per memory between `<memory>` and `</memory>`; "" for no memories."""
    lines = [memory_line(memory) for memory in memories]
    return "\n".join(["<memory>", *lines, "</memory>"]) if lines else ""
