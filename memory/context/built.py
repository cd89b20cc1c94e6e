"""What is handed out of what was found and fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from madeleine.memory.chat import Message
from madeleine.memory.context.asked import BuiltContext, ChatTurn, ContextQuery, Day, Dropped
from madeleine.memory.context.fitting import Fit
from madeleine.memory.context.pieces import Found
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Memory
from madeleine.memory.rules.prompting.blocks import KEPT_IN_MIND, PARTS, Part, shortened

One = TypeVar("One", Memory, SearchHit, Message)

_NAMED: frozenset[Part] = frozenset({"soul", "partner_rules", "relationships", "tools", "map", "knowledge"})
"""Parts of the profile that are no memories: that they were shown is audited, not which of them."""


def built(query: ContextQuery, found: Found, fit: Fit) -> BuiltContext:
    """Of each list that was asked for what was not dropped."""
    gone = {(piece.part, piece.id) for position, piece in enumerate(fit.pieces) if position not in fit.choice.kept}
    in_full = {fit.pieces[position].id for position in fit.choice.in_full}
    wanted, texts = query.blocks, fit.texts
    snapshot = (ChatTurn("user", texts.snapshot), ChatTurn("assistant", KEPT_IN_MIND)) if texts.snapshot else ()

    def left(part: Part, items: tuple[One, ...]) -> tuple[One, ...]:
        return tuple(one for one in items if (part, one.id) not in gone)

    return BuiltContext(
        system_prompt=texts.system_prompt,
        snapshot=snapshot,
        turn=texts.turn,
        prompt=texts.prompt,
        recent_nodes=left("recent_nodes", tuple(found.recent_nodes)) if "recent_nodes" in wanted else None,
        memory_block=texts.by_part.get("memory_block", "") if "memory_block" in wanted else None,
        recalled=tuple((memory, score) for memory, score in found.recalled if ("memory_block", memory.id) not in gone),
        memories=left("memories", tuple(found.hits)) if "memories" in wanted else None,
        history_current_chat=(
            left("history_current_chat", tuple(found.current_chat)) if "history_current_chat" in wanted else None
        ),
        history_recent=left("history_recent", tuple(found.other_chats)) if "history_recent" in wanted else None,
        diary=(
            tuple(
                Day(date=day.date, text=day.text if day.date in in_full else shortened(day.text))
                for day in found.diary
                if ("diary", day.date) not in gone
            )
            if "diary" in wanted
            else None
        ),
        thoughts=(
            tuple(text for n, text in enumerate(found.thoughts) if ("thoughts", str(n)) not in gone)
            if "thoughts" in wanted
            else None
        ),
        tags_placeholder=() if "tags_placeholder" in wanted else None,
        dropped=tuple(dropped(fit)),
        tokens=fit.tokens,
        shown=[shown_id(piece.part, piece.id) for part in PARTS for piece in fit.stays(part)],
        meaning_off=found.meaning_off,
    )


def dropped(fit: Fit) -> Iterator[Dropped]:
    """By part, in the order in which they are shown."""
    if fit.costs is None:
        return
    for part in PARTS:
        of_part = [position for position, piece in enumerate(fit.pieces) if piece.part == part]
        out = [position for position in of_part if position not in fit.choice.kept]
        if out:
            yield Dropped(
                part=part,
                count=len(out),
                tokens=sum(fit.costs.pieces[position] for position in out),
                ids=tuple(fit.pieces[position].id for position in out),
            )
        brief = [
            position
            for position in of_part
            if position in fit.choice.kept and fit.pieces[position].in_full and position not in fit.choice.in_full
        ]
        if brief:
            yield Dropped(
                part=part,
                count=len(brief),
                tokens=sum(fit.costs.in_full[position] - fit.costs.pieces[position] for position in brief),
                ids=tuple(fit.pieces[position].id for position in brief),
                in_full=True,
            )


def shown_id(part: Part, id_: str) -> str:
    """For the audit: memories, notes and messages by their ids, the rest by its part."""
    if part in _NAMED or part == "thoughts":
        return f"profile/{part}"
    return f"diary/{id_}" if part == "diary" else id_
