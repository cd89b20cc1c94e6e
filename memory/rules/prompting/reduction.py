"""Prompt reduction (spec H5): which entries fit into a token limit; the least valuable are dropped first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from madeleine.memory.rules.prompting.prompt_parts import PromptPart

PRIORITY: tuple[PromptPart | None, ...] = (
    "soul", "partner_rules", "preferences", "memory_block", "notes", "thoughts", "relationships", "tools", "map",
    "knowledge", "diary", "recent_nodes", "memories", None, "history_current_chat", "history_recent",
)  # fmt: skip
"""The most valuable part first. None: the full text of diary entries."""
_FULL_TEXT = PRIORITY.index(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEntry:
    """A rendered entry. `rank`: its place within its part, 0 the most valuable. `full`: a longer text that replaces
    `text` where there is room; "" for none."""

    part: PromptPart
    id: str
    text: str
    rank: int
    full: str = ""


@dataclass(frozen=True, slots=True)
class EntryCosts:
    """Tokens of each entry and of its full text, by position; of the tags of each part, paid with its first entry; and
    of text that is always there."""

    entries: Sequence[int]
    full: Sequence[int]
    tags: Mapping[PromptPart, int]
    fixed: int = 0


@dataclass(frozen=True, slots=True)
class EntrySelection:
    """Positions of the entries that stay, and of those that stay in full."""

    kept: frozenset[int]
    full: frozenset[int]


def select_entries(entries: Sequence[PromptEntry], costs: EntryCosts, *, limit: int) -> EntrySelection:
    """Greedy by priority: each entry that still fits stays; an entry that is too long leaves its room to the next ones.
    The costs of the selection never exceed `limit`; nothing stays if `costs.fixed` alone exceeds it."""
    used = costs.fixed
    kept: set[int] = set()
    full: set[int] = set()
    open_parts: set[PromptPart] = set()
    if used > limit:
        return EntrySelection(frozenset(), frozenset())
    for priority, position in _by_priority(entries):
        part = entries[position].part
        if priority == _FULL_TEXT:
            cost = costs.full[position] - costs.entries[position]
            if position in kept and used + cost <= limit:
                full.add(position)
                used += cost
            continue
        cost = costs.entries[position] + (0 if part in open_parts else costs.tags[part])
        if used + cost <= limit:
            kept.add(position)
            open_parts.add(part)
            used += cost
    return EntrySelection(frozenset(kept), frozenset(full))


def _by_priority(entries: Sequence[PromptEntry]) -> list[tuple[int, int]]:
    """(index in `PRIORITY`, position), most valuable first."""
    keys = [(PRIORITY.index(entry.part), entry.rank, position) for position, entry in enumerate(entries)]
    keys += [(_FULL_TEXT, entry.rank, position) for position, entry in enumerate(entries) if entry.full]
    return [(priority, position) for priority, _, position in sorted(keys)]
