"""How many dead memories come back after they were found by search or opened by id."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from benchmarks.dynamics.measures import percent_of
from benchmarks.dynamics.rule_based_agent import words
from benchmarks.dynamics.simulation import SCOPE, Simulation
from madeleine.memory.model import Memory
from madeleine.memory.rules.dynamics.importance import (
    MAX_DYING_IMPORTANCE,
    effective_importance,
    session_count_if_revived,
)

Tool = Literal["search_memory", "recall_memory"]
Patrols = Literal["after", "between"]
CUES = (1, 2, 3)
IMPORTANCES = (0.05, 0.06, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MOST_WORDS = 4


@dataclass
class RevivalSample:
    """A sample of dead memories, cued `cues` times by one tool, with a patrol after the last cue or after each."""

    tool: Tool
    cues: int
    patrols: Patrols
    memories: int = 0
    hit: int = 0
    """Memories that the tool returned at every cue."""
    revived: int = 0
    revived_of_hit: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "channel": self.tool,
            "cues": self.cues,
            "patrols": self.patrols,
            "memories": self.memories,
            "hit": percent_of(self.hit, self.memories),
            "came back": percent_of(self.revived, self.memories),
            "came back, of those hit": percent_of(self.revived_of_hit, self.hit),
        }


WAYS: tuple[tuple[Tool, int, Patrols], ...] = tuple(
    (tool, cues, patrols)
    for tool in ("search_memory", "recall_memory")
    for cues in CUES
    for patrols in ("after", "between")
    if cues > 1 or patrols == "after"
)  # fmt: skip


async def measure_revival(simulation: Simulation, *, seed: int) -> dict[str, Any]:
    """Cue a disjoint sample in each way. The patrols take no decisions, so nothing else dies meanwhile."""
    dead = [memory for memory in (await simulation.all_memories()).values() if memory.status == "dead"]
    forgotten = sorted((memory for memory in dead if memory.absorbed_into is None), key=lambda memory: memory.id)
    random.Random(seed).shuffle(forgotten)
    samples = []
    for position, (tool, cues, patrols) in enumerate(WAYS):
        memories = forgotten[position :: len(WAYS)]
        sample = RevivalSample(tool, cues, patrols, memories=len(memories))
        await _cue(simulation, memories, sample)
        samples.append(sample.as_json())
    return {
        "dead": len(dead),
        "absorbed": len(dead) - len(forgotten),
        "ways": samples,
        "by importance": revival_by_importance(),
    }


async def _cue(simulation: Simulation, memories: Sequence[Memory], sample: RevivalSample) -> None:
    hit = {memory.id for memory in memories}
    for cue in range(sample.cues):
        for memory in memories:
            if sample.tool == "search_memory":
                is_hit = memory.id in await simulation.keyword_hits(longest_words(memory.scene.action))
            else:
                is_hit = bool((await simulation.browse.by_ids(SCOPE, [memory.id])).memories)
            if not is_hit:
                hit.discard(memory.id)
        if sample.patrols == "between" or cue == sample.cues - 1:
            simulation.clock += timedelta(days=1)
            await simulation.run_patrol(decides=False)
    current = await simulation.memory.ledger.memories.memories_with_ids(SCOPE, [memory.id for memory in memories])
    revived = {memory.id for memory in current if memory.status == "active"}
    sample.hit, sample.revived, sample.revived_of_hit = len(hit), len(revived), len(revived & hit)


def longest_words(text: str) -> list[str]:
    """The `MOST_WORDS` longest words that are not stop words."""
    return sorted(words(text), key=lambda word: (-len(word), word))[:MOST_WORDS]


def revival_by_importance() -> list[dict[str, Any]]:
    """What ❺ computes for a memory of each importance that has just faded. One strong cue counts 2."""
    rows = []
    for importance in IMPORTANCES:
        faded = next(count for count in range(1000) if effective_importance(importance, count) <= MAX_DYING_IMPORTANCE)
        row: dict[str, Any] = {"importance": importance, "fades after": faded}
        for cues in CUES:
            row[f"session count after {cues}"] = session_count_if_revived(
                importance=importance, session_count=faded, reactivation_count=2 * cues
            )
        rows.append(row)
    return rows
