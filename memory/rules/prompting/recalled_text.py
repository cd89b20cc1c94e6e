"""Write memories into prompts and answers: escaped text, the `<memory>` block, fragments (spec L2, L4, P9;
rulings 7 and 22).

Provenance (id, date, actors, source) is returned beside the text in every format and is not counted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from madeleine.memory.model import Category, DatedAction, Memory, when_date

TIMELINE_ENTRIES, TIMELINE_CHARS = 5, 200
"""A recall shows the last entries of a long timeline, each truncated; recall_memory shows all."""
_CATEGORY_ORDER: tuple[Category, ...] = ("semantic", "social", "procedural", "working", "episodic")

_TAG_SIGN = r"[<\uff1c\ufe64\u2039\u2329\u3008\u27e8\u276e\u02c2]"
"""A sign that can be read as the beginning of a tag, in whatever script."""
_TAG_OPENING = re.compile(rf"{_TAG_SIGN}[\W_]*+")
_TAG_NAMES = ("recall", "memory", "context")
_LONGEST_TAG_NAME = max(map(len, _TAG_NAMES))
_LOOKALIKES = str.maketrans("аеосгмуӏαεοχхтτ", "aeocrmylaeoxxtt")
_TAG_NAME_WINDOW = 100
"""Characters in which a tag's name is looked for: as written it may hold others between its letters."""


def without_tags(text: str) -> str:
    """The text, its lines kept, with the openings of our own tags escaped."""

    def escaped(match: re.Match[str]) -> str:
        names_tag = _begins_with_tag_name(text[match.end() : match.end() + _TAG_NAME_WINDOW])
        return re.sub(_TAG_SIGN, "&lt;", match[0]) if names_tag else match[0]

    return _TAG_OPENING.sub(escaped, text)


def _begins_with_tag_name(text: str) -> bool:
    name = ""
    for sign in unicodedata.normalize("NFKD", text).casefold().translate(_LOOKALIKES):
        if name in _TAG_NAMES and not sign.isalnum():
            return True
        if len(name) > _LONGEST_TAG_NAME:
            return False
        name += sign if sign.isalnum() else ""
    return name in _TAG_NAMES


def quoted(text: str) -> str:
    """One line that cannot close or open the tags around recalled text, however it spells them: letter case, spaces,
    invisible signs, full-width and look-alike letters aside."""
    return without_tags(" ".join(text.split()))


# --- lines of the prompt ----------------------------------------------------------------------------------------


def memory_line(memory: Memory) -> str:
    """`[CATEGORY] content`; an episodic memory with a date begins with it, as in the spec's example."""
    dated = f"{when_date(memory.scene.when[0])}: " if memory.category == "episodic" and memory.scene.when else ""
    return f"[{memory.category.upper()}] {quoted(dated + memory.scene.action)}"


def memories_in_prompt_order(memories: Sequence[Memory]) -> list[Memory]:
    """The order of the spec's example: facts, behaviour, then events, latest first. Within a category without an order
    in time the given order stays."""

    def place(memory: Memory) -> tuple[int, float]:
        dated = memory.category == "episodic"
        return _CATEGORY_ORDER.index(memory.category), -memory.happened_at.timestamp() if dated else 0.0

    return sorted(memories, key=place)


def recallable_text(memory: Memory) -> str:
    """All text of a memory that a recall may return, in any format: an upper bound for its token cost."""
    return _joined_lines(memory_line(memory), quoted(memory.feeling), memory.lesson, *timeline_lines(memory))


def timeline_lines(memory: Memory) -> tuple[str, ...]:
    """The latest dated actions of a memory, one truncated line each."""
    entries = [item for item in memory.scene.when if isinstance(item, DatedAction)][-TIMELINE_ENTRIES:]
    return tuple(f"{when_date(item)}: {item.action}"[:TIMELINE_CHARS] for item in entries)


def memory_block_text(memories: Iterable[Memory]) -> str:
    """One line per memory between `<memory>` and `</memory>`; "" for no memories."""
    lines = [memory_line(memory) for memory in memories]
    return "\n".join(["<memory>", *lines, "</memory>"]) if lines else ""


def _joined_lines(*texts: str) -> str:
    return "\n".join(filter(None, texts))


# --- fragments --------------------------------------------------------------------------------------------------


class RandomSource(Protocol):
    """`random.Random` is one."""

    def randrange(self, stop: int, /) -> int:
        """Uniform in [0, stop)."""


def shuffled(items: Iterable[str], chance: RandomSource) -> list[str]:
    """Fisher–Yates (Durstenfeld's form): every order is equally likely if `chance` is uniform."""
    deck = list(items)
    for last in range(len(deck) - 1, 0, -1):
        pick = chance.randrange(last + 1)
        deck[last], deck[pick] = deck[pick], deck[last]
    return deck


def _fragments_of(memory: Memory) -> list[str]:
    return [part for part in (memory.scene.action, memory.feeling) if part]


def fragments(memories: Iterable[Memory], chance: RandomSource) -> str:
    """`<recall>fragment / fragment / …</recall>`: actions and feelings, their owners' bounds blurred; "" for none."""
    deck = [part for memory in memories for part in _fragments_of(memory)]
    # Quoted again as a whole: `<` at the end of one fragment and `recall>` after it would read as a tag.
    stream = without_tags(" / ".join(quoted(part) for part in shuffled(deck, chance)))
    return f"<recall>{stream}</recall>" if deck else ""


# --- formats of an answer --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFormat:
    """`render`: the whole text; "" for no memories. `render_entry`: one memory's share of it, with its separator.
    `tags`: enclose the entries. Tags and entries have as many tokens as the whole, or a few more, with any
    tokenizer that splits at words and punctuation."""

    render: Callable[[Sequence[Memory]], str]
    render_entry: Callable[[Memory], str]
    tags: str = ""


def _list_entry(memory: Memory) -> str:
    return _joined_lines(memory.scene.action, memory.feeling, memory.lesson, *timeline_lines(memory))


LIST_FORMAT = AnswerFormat(render=lambda memories: "\n".join(map(_list_entry, memories)), render_entry=_list_entry)
"""Text, feeling, lesson and timeline of each memory."""
PROMPT_FORMAT = AnswerFormat(render=memory_block_text, render_entry=memory_line, tags="<memory></memory>")


def fragments_format(chance: RandomSource) -> AnswerFormat:
    """Shuffled fragments in a tag (spec P9)."""
    return AnswerFormat(
        render=lambda memories: fragments(memories, chance),
        render_entry=lambda memory: "".join(f"{quoted(part)} / " for part in _fragments_of(memory)),
        tags="<recall></recall>",
    )
