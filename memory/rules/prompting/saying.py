"""How an answer says memories, and so what its token budget is spent on (spec L2).

Where a memory comes from (id, date, who, provenance) is told beside the text, in every way of saying, and not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from madeleine.memory.model import Memory
from madeleine.memory.ports import RandomSource
from madeleine.memory.rules.prompting.fragments import fragments, quoted
from madeleine.memory.rules.prompting.prompt import prompt_block, prompt_line, retold


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """`whole`: the text; "" for no memories. `part`: what one memory adds to it, with what parts it from the next;
    `frame`: what stands around them. Frame and parts have as many tokens as the whole, or a few more, with any
    tokenizer that takes words and signs one by one."""

    whole: Callable[[Sequence[Memory]], str]
    part: Callable[[Memory], str]
    frame: str = ""


def _lines(memory: Memory) -> str:
    return "\n".join(part for part in (memory.scene.action, memory.feeling, memory.lesson, *retold(memory)) if part)


LISTED = Saying(whole=lambda memories: "\n".join(map(_lines, memories)), part=_lines)
"""Text, feeling, lesson and timeline of each, as a list gives them."""
PROMPT = Saying(whole=prompt_block, part=prompt_line, frame="<memory></memory>")


def shuffled_by(chance: RandomSource) -> Saying:
    """Fragments in a tag (spec P9)."""
    return Saying(
        whole=lambda memories: fragments(memories, chance),
        part=lambda memory: "".join(f"{quoted(part)} / " for part in (memory.scene.action, memory.feeling) if part),
        frame="<recall></recall>",
    )
