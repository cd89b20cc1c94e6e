"""Fit prompt entries into a token limit, counted by the model's own tokenizer (spec H5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from madeleine.memory.context.values import DroppedPart
from madeleine.memory.embedding import Embedder
from madeleine.memory.rules.prompting.prompt_parts import (
    DATA_NOTICE,
    PARTS,
    SNAPSHOT,
    SNAPSHOT_REPLY,
    SYSTEM_PROMPT,
    TURN,
    PromptPart,
    delimiters,
    render_part,
    render_parts,
)


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """The rendered prompt. `by_part`: the parts of the turn."""

    system_prompt: str = ""
    snapshot: str = ""
    turn: str = ""
    by_part: Mapping[str, str] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        return "\n\n".join(text for text in (self.system_prompt, self.snapshot, self.turn) if text)


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """`costs`: None where everything fits, so that nothing had to be counted one by one."""

    entries: Sequence[PromptEntry]
    selection: EntrySelection
    texts: PromptTexts
    tokens: Mapping[str, int]
    costs: EntryCosts | None = None

    def kept(self, part: PromptPart) -> list[PromptEntry]:
        kept = self.selection.kept
        return [entry for position, entry in enumerate(self.entries) if position in kept and entry.part == part]

    def dropped(self) -> Iterator[DroppedPart]:
        """What was left out or shortened, by part, in the order in which the parts are shown."""
        if self.costs is None:
            return
        shown = self.selection
        for part in PARTS:
            positions = [position for position, entry in enumerate(self.entries) if entry.part == part]
            left_out = [position for position in positions if position not in shown.kept]
            shortened = [
                position
                for position in positions
                if self.entries[position].full and position in shown.kept - shown.full
            ]
            if left_out:
                tokens = sum(self.costs.entries[position] for position in left_out)
                yield DroppedPart(part=part, count=len(left_out), tokens=tokens)
            if shortened:
                tokens = sum(self.costs.full[position] - self.costs.entries[position] for position in shortened)
                yield DroppedPart(part=part, count=len(shortened), tokens=tokens, full=True)


async def fit_prompt(
    entries: Sequence[PromptEntry], embedder: Embedder, *, limit: int, with_notice: bool
) -> FittedPrompt:
    """Keep as many entries as fit, by priority. Neither the one prompt nor its messages together exceed `limit`."""
    everything = EntrySelection(
        frozenset(range(len(entries))), frozenset(n for n, entry in enumerate(entries) if entry.full)
    )
    texts = render_prompt(entries, everything, with_notice=with_notice)
    tokens = await _count_tokens(texts, embedder)
    if tokens["total"] <= limit:
        return FittedPrompt(entries, everything, texts, tokens)
    costs = await _entry_costs(entries, embedder, with_notice=with_notice)
    budget = limit
    while True:
        selection = select_entries(entries, costs, limit=budget)
        texts = render_prompt(entries, selection, with_notice=with_notice and costs.fixed <= budget)
        tokens = await _count_tokens(texts, embedder)
        if tokens["total"] <= limit or not texts.prompt:
            return FittedPrompt(entries, selection, texts, tokens, costs)
        # A tokenizer may need more for a text than for its lines.
        budget -= tokens["total"] - limit


def render_prompt(entries: Sequence[PromptEntry], selection: EntrySelection, *, with_notice: bool) -> PromptTexts:
    by_part: dict[PromptPart, list[str]] = defaultdict(list)
    for position, entry in enumerate(entries):
        if position in selection.kept:
            by_part[entry.part].append(entry.full if position in selection.full else entry.text)
    system = render_parts(by_part, SYSTEM_PROMPT)
    return PromptTexts(
        system_prompt="\n\n".join(text for text in (system, DATA_NOTICE if with_notice else "") if text),
        snapshot=render_parts(by_part, SNAPSHOT),
        turn=render_parts(by_part, TURN),
        by_part={part: render_part(part, by_part[part]) for part in TURN if by_part[part]},
    )


async def _count_tokens(texts: PromptTexts, embedder: Embedder) -> dict[str, int]:
    """Tokens by block; `total` is the greater of the two forms, the one prompt and the messages."""
    snapshot = f"{texts.snapshot}\n{SNAPSHOT_REPLY}" if texts.snapshot else ""
    blocks: dict[str, str] = {"system_prompt": texts.system_prompt, "snapshot": snapshot, **texts.by_part}
    prompt, turn, *counts = await embedder.count_tokens([texts.prompt, texts.turn, *blocks.values()])
    tokens = dict(zip(blocks, counts, strict=True))
    total = max(prompt, tokens["system_prompt"] + tokens["snapshot"] + turn)
    return {"total": total} | {name: count for name, count in tokens.items() if count}


async def _entry_costs(entries: Sequence[PromptEntry], embedder: Embedder, *, with_notice: bool) -> EntryCosts:
    reply = f"{SNAPSHOT_REPLY}\n" if any(entry.part in SNAPSHOT for entry in entries) else ""
    tags = ["\n".join((*delimiters(part), "\n")) for part in PARTS]
    counted = await embedder.count_tokens(
        [
            f"{DATA_NOTICE}\n\n" if with_notice else "",
            reply,
            *tags,
            *(f"{entry.text}\n" for entry in entries),
            *(f"{entry.full}\n" for entry in entries),
        ]
    )
    counts = iter(counted)
    return EntryCosts(
        fixed=next(counts) + next(counts),
        tags={part: next(counts) for part in PARTS},
        entries=[next(counts) for _ in entries],
        full=list(counts),
    )


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
