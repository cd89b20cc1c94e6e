"""The prompt within its limit of tokens, counted by the model's own tokenizer (spec H5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from madeleine.memory.ports import Embedder
from madeleine.memory.rules.prompting.blocks import (
    KEPT_IN_MIND,
    NOTICE,
    PARTS,
    SNAPSHOT,
    SYSTEM_PROMPT,
    TURN,
    Part,
    block,
    blocks,
    frame,
)
from madeleine.memory.rules.prompting.reduction import Choice, Costs, Piece, reduced


@dataclass(frozen=True, slots=True)
class Texts:
    """As they are handed out. `by_part`: the blocks of the turn."""

    system_prompt: str = ""
    snapshot: str = ""
    turn: str = ""
    by_part: Mapping[Part, str] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        return "\n\n".join(text for text in (self.system_prompt, self.snapshot, self.turn) if text)


@dataclass(frozen=True, slots=True)
class Fit:
    """`costs`: None where everything fits, and nothing had to be counted one by one."""

    pieces: Sequence[Piece]
    choice: Choice
    texts: Texts
    tokens: Mapping[str, int]
    costs: Costs | None = None

    def stays(self, part: Part) -> list[Piece]:
        return [
            piece for position, piece in enumerate(self.pieces) if position in self.choice.kept and piece.part == part
        ]


async def fitted(pieces: Sequence[Piece], embedder: Embedder, *, limit: int, with_notice: bool) -> Fit:
    """As many of the pieces as fit, by worth. Never more than `limit`, neither as one prompt nor as its messages."""
    everything = Choice(frozenset(range(len(pieces))), frozenset(i for i, piece in enumerate(pieces) if piece.in_full))
    texts = laid_out(pieces, everything, with_notice=with_notice)
    tokens = await _counted(texts, embedder)
    if tokens["total"] <= limit:
        return Fit(pieces, everything, texts, tokens)
    costs = await _costs(pieces, embedder, with_notice=with_notice)
    budget = limit
    while True:
        choice = reduced(pieces, costs, limit=budget)
        texts = laid_out(pieces, choice, with_notice=with_notice and costs.fixed <= budget)
        tokens = await _counted(texts, embedder)
        if tokens["total"] <= limit or not texts.prompt:
            return Fit(pieces, choice, texts, tokens, costs)
        # A tokenizer may need more for a text than for its lines.
        budget -= tokens["total"] - limit


def laid_out(pieces: Sequence[Piece], choice: Choice, *, with_notice: bool) -> Texts:
    entries: dict[Part, list[str]] = defaultdict(list)
    for position, piece in enumerate(pieces):
        if position in choice.kept:
            entries[piece.part].append(piece.in_full if position in choice.in_full else piece.text)
    system = blocks(entries, SYSTEM_PROMPT)
    return Texts(
        system_prompt="\n\n".join(text for text in (system, NOTICE if with_notice else "") if text),
        snapshot=blocks(entries, SNAPSHOT),
        turn=blocks(entries, TURN),
        by_part={part: block(part, entries[part]) for part in TURN if entries[part]},
    )


async def _counted(texts: Texts, embedder: Embedder) -> dict[str, int]:
    """`total` is what either form takes, the one prompt or the messages: the greater."""
    snapshot = f"{texts.snapshot}\n{KEPT_IN_MIND}" if texts.snapshot else ""
    named: dict[str, str] = {"system_prompt": texts.system_prompt, "snapshot": snapshot}
    named |= {str(part): text for part, text in texts.by_part.items()}
    prompt, turn, *of_blocks = await embedder.count_tokens([texts.prompt, texts.turn, *named.values()])
    found = dict(zip(named, of_blocks, strict=True))
    total = max(prompt, found["system_prompt"] + found["snapshot"] + turn)
    return {"total": total} | {name: tokens for name, tokens in found.items() if tokens}


async def _costs(pieces: Sequence[Piece], embedder: Embedder, *, with_notice: bool) -> Costs:
    frames = {part: "\n".join((*frame(part), "\n")) for part in PARTS}
    answer = KEPT_IN_MIND if any(piece.part in SNAPSHOT for piece in pieces) else ""
    counts = await embedder.count_tokens(
        [
            f"{NOTICE}\n\n" if with_notice else "",
            answer and f"{answer}\n",
            *frames.values(),
            *(f"{piece.text}\n" for piece in pieces),
            *(f"{piece.in_full}\n" for piece in pieces),
        ]
    )
    of_pieces = 2 + len(frames)
    return Costs(
        fixed=counts[0] + counts[1],
        frames=dict(zip(frames, counts[2:of_pieces], strict=True)),
        pieces=counts[of_pieces : of_pieces + len(pieces)],
        in_full=counts[of_pieces + len(pieces) :],
    )
