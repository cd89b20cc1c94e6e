"""What of a prompt fits into a limit of tokens (spec H5, prompt reduction): the least valuable goes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from madeleine.memory.rules.prompting.blocks import Part

WORTH: tuple[Part | None, ...] = (
    "soul", "partner_rules", "preferences", "memory_block", "notes", "thoughts", "relationships", "tools", "map",
    "knowledge", "diary", "recent_nodes", "memories", None, "history_current_chat", "history_recent",
)  # fmt: skip
"""The most valuable part first. None: that the diary is told in full."""
IN_FULL = WORTH.index(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """An entry of a prompt as it is written. `rank`: its place by worth among those of its part, 0 the best.
    `in_full`: what may stand in its place where there is room."""

    part: Part
    id: str
    text: str
    rank: int
    in_full: str = ""


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens: of each piece, and of it in full; of what surrounds each part, paid with its first piece; and of what is
    there in any case."""

    pieces: Sequence[int]
    in_full: Sequence[int]
    frames: Mapping[Part, int]
    fixed: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """Positions of the pieces that stay, and of those among them that are told in full."""

    kept: frozenset[int]
    in_full: frozenset[int]


def reduced(pieces: Sequence[Piece], costs: Costs, *, limit: int) -> Choice:
    """From the most valuable piece to the least, each that still fits stays, whole. What one that is too long leaves
    free goes to those after it. By `costs` the sum is never greater than `limit`, and nothing stays if not even
    `costs.fixed` fits."""
    used = costs.fixed
    kept: set[int] = set()
    in_full: set[int] = set()
    open_parts: set[Part] = set()
    if used > limit:
        return Choice(frozenset(), frozenset())
    for place, position in _by_worth(pieces):
        piece = pieces[position]
        if place == IN_FULL:
            more = costs.in_full[position] - costs.pieces[position]
            if position in kept and used + more <= limit:
                in_full.add(position)
                used += more
            continue
        cost = costs.pieces[position] + (0 if piece.part in open_parts else costs.frames[piece.part])
        if used + cost <= limit:
            kept.add(position)
            open_parts.add(piece.part)
            used += cost
    return Choice(frozenset(kept), frozenset(in_full))


def _by_worth(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """(place in `WORTH`, position), best first."""
    places = [(WORTH.index(piece.part), piece.rank, position) for position, piece in enumerate(pieces)]
    places += [(IN_FULL, piece.rank, position) for position, piece in enumerate(pieces) if piece.in_full]
    return [(place, position) for place, _, position in sorted(places)]
