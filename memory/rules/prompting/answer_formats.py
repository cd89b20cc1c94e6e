"""Formats in which recall returns memories; the token budget is spent on this text (spec L2).

Provenance (id, date, actors, source) is returned beside the text in every format and is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from madeleine.memory.model import Memory
from madeleine.memory.rules.prompting.fragments import RandomSource, fragments, quoted
from madeleine.memory.rules.prompting.memory_block import memory_block_text, memory_line, timeline_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFormat:
    """`render`: the whole text; "" for no memories. `render_entry`: one memory's share of it, with its separator.
    `tags`: what encloses the entries. Tags and entries have as many tokens as the whole, or a few more, with any
    tokenizer that splits at words and punctuation."""

    render: Callable[[Sequence[Memory]], str]
    render_entry: Callable[[Memory], str]
    tags: str = ""


def _lines(memory: Memory) -> str:
    texts = (memory.scene.action, memory.feeling, memory.lesson, *timeline_lines(memory))
    return "\n".join(filter(None, texts))


LIST_FORMAT = AnswerFormat(render=lambda memories: "\n".join(map(_lines, memories)), render_entry=_lines)
"""Text, feeling, lesson and timeline of each memory."""
PROMPT_FORMAT = AnswerFormat(render=memory_block_text, render_entry=memory_line, tags="<memory></memory>")


def fragments_format(chance: RandomSource) -> AnswerFormat:
    """Shuffled fragments in a tag (spec P9)."""
    return AnswerFormat(
        render=lambda memories: fragments(memories, chance),
        render_entry=lambda memory: "".join(
            f"{quoted(part)} / " for part in (memory.scene.action, memory.feeling) if part
        ),
        tags="<recall></recall>",
    )
