"""What a life is judged by on a day: retrieval, clusters, what is alive, preferences, summaries, size."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks import metrics
from benchmarks.life.lives import Life
from benchmarks.life.living import SCOPE, UNCOUNTED, LifeRecord, LivedStore, Night
from benchmarks.life.obedient_mind import still_holds
from madeleine.memory.model import Memory, MemoryId
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.wiring.data_directory import LEDGER_FILE

TOP, TOP_FOR_NOISE = 10, 5
SHOWN_NAMES = 10
DECIDED_WITHIN_DAYS = 7


async def measure_day(lived: LivedStore, life: Life, day: int, data_dir: Path) -> dict[str, Any]:
    memories = await all_memories(lived)
    topics = {
        memory: session.topic
        for session in life.sessions
        for turn in session.turns
        for memory in lived.memories_of.get(turn.id, ())
    }
    statuses = Counter(memory.status for memory in memories.values() if not memory.absorbed_into)
    hidden = sum(memory.compressed for memory in memories.values())
    preferences = [memory for memory in memories.values() if memory.category == "procedural"]
    lived.clock = lived.clock.replace(hour=23)
    return {
        "day": day,
        "memories": len(memories),
        **{status: statuses.get(status, 0) for status in ("active", "dying", "dead")},
        "absorbed": sum(bool(memory.absorbed_into) for memory in memories.values()),
        "compressed": hidden,
        "recalled from": sum(
            memory.status != "dead" and not memory.compressed and not memory.absorbed_into
            for memory in memories.values()
        ),
        "summaries": sum(memory.compression_source for memory in memories.values()),
        "preferences": len(preferences),
        "preferences of the assistant": sum("assistant" in memory.scene.actors for memory in preferences),
        "ledger bytes": _ledger_bytes(data_dir),
        **await _retrieval(lived, life, day, memories),
        "clusters": await measure_clusters(lived, memories, topics),
    }


async def all_memories(lived: LivedStore) -> dict[MemoryId, Memory]:
    memories: dict[MemoryId, Memory] = {}
    after: MemoryId | None = None
    while page := await lived.memory.ledger.index_source.memories_after_id(after=after, limit=500):
        memories |= {memory.id: memory for memory in page}
        after = page[-1].id
    return memories


def _ledger_bytes(data_dir: Path) -> int:
    with closing(sqlite3.connect(data_dir / LEDGER_FILE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (data_dir / LEDGER_FILE).stat().st_size


# --- retrieval --------------------------------------------------------------------------------------------------


async def _retrieval(
    lived: LivedStore, life: Life, day: int, memories: Mapping[MemoryId, Memory]
) -> dict[str, float | int]:
    """Over the questions whose evidence was told: the share of it among the first ten memories, and nDCG; the share
    again of those whose evidence is all of it more than small talk; and how much of the first five memories is small
    talk, as the mind of rules judges it. A turn is found by a memory that it became, by the one that absorbed it, or by
    a summary that holds the memory's text."""
    shares, gains, noise = [], [], []
    holding: list[float] = []
    sources = _sources_of_passages(memories)
    held = {turn.id for session in life.sessions for turn in session.turns if still_holds(turn.text)}
    for question in life.answerable_on(day):
        ranked = await lived.recall.rank(UNCOUNTED, RecallQuery(text=question.text))
        best = [memories[id_] for id_ in ranked.ids[:TOP]]
        ranks = sorted(
            rank for turn in question.gold if (rank := _rank_of_turn(lived.memories_of.get(turn, ()), memories, best))
        )
        shares.append(len(ranks) / len(question.gold))
        if held.issuperset(question.gold):
            holding.append(shares[-1])
        noise += [_noise(memory, sources) for memory in best[:TOP_FOR_NOISE]]
        gains.append(metrics.ndcg_at_k(ranks, len(question.gold), at=TOP))
    found = {"R@10": metrics.mean_percent(shares), "nDCG@10": metrics.mean_percent(gains)} if shares else {}
    if holding:
        found["R@10, what still holds"] = metrics.mean_percent(holding)
    if noise:
        found["noise among the first five %"] = metrics.mean_percent(noise)
    return {"questions": len(shares)} | {name: round(value, 2) for name, value in found.items()}


def _sources_of_passages(memories: Mapping[MemoryId, Memory]) -> dict[MemoryId, list[Memory]]:
    sources: dict[MemoryId, list[Memory]] = defaultdict(list)
    for memory in memories.values():
        if memory.compressed_into and not memory.compression_source:
            sources[memory.compressed_into].append(memory)
    return sources


def _noise(memory: Memory, sources: Mapping[MemoryId, Sequence[Memory]]) -> float:
    """The share of small talk in a memory, of a passage or a summary among the scenes that it shows."""
    shown = _on_one_line(memory.scene.action)
    scenes = [one for one in sources.get(memory.id, ()) if _on_one_line(one.scene.action) in shown]
    return fmean(not still_holds(one.scene.action) for one in scenes or [memory])


def _survivors(ids: Sequence[MemoryId], memories: Mapping[MemoryId, Memory]) -> set[MemoryId]:
    survivors = set()
    for id_ in ids:
        memory = memories[id_]
        while memory.absorbed_into:
            memory = memories[memory.absorbed_into]
        survivors.add(memory.id)
    return survivors


def _rank_of_turn(ids: Sequence[MemoryId], memories: Mapping[MemoryId, Memory], best: Sequence[Memory]) -> int:
    """From 1; 0 if it is not among them. `ids`: of the memories that the turn became."""
    survivors = _survivors(ids, memories)
    texts = [_on_one_line(memories[id_].scene.action) for id_ in ids]
    for rank, memory in enumerate(best, 1):
        shown = _on_one_line(memory.scene.action)
        if memory.id in survivors or (memory.compression_source and any(text in shown for text in texts)):
            return rank
    return 0


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


# --- clusters ---------------------------------------------------------------------------------------------------


async def measure_clusters(
    lived: LivedStore, memories: Mapping[MemoryId, Memory], topics: Mapping[MemoryId, str]
) -> dict[str, Any]:
    """Of the memories that are neither dead nor absorbed; those directly under a root are in no cluster."""
    clusters = {
        cluster.id: cluster for cluster in await lived.memory.ledger.patrols.memory_reader_for_patrol(SCOPE).clusters()
    }
    members: dict[str, list[MemoryId]] = defaultdict(list)
    loose = 0
    for memory in memories.values():
        if memory.status == "dead" or memory.absorbed_into:
            continue
        cluster = clusters.get(memory.cluster_id) if memory.cluster_id else None
        if cluster is None or cluster.is_root:
            loose += 1
        else:
            members[cluster.id].append(memory.id)
    sizes = {id_: len(ids) for id_, ids in members.items()}
    alive = loose + sum(sizes.values())
    pairs = [(topics[id_], cluster) for cluster, ids in members.items() for id_ in ids if id_ in topics]
    largest = sorted(sizes, key=lambda id_: (-sizes[id_], id_))[:SHOWN_NAMES]
    return {
        "count": len(members),
        "in no cluster %": round(100 * loose / alive, 1) if alive else 0.0,
        "largest %": round(100 * max(sizes.values(), default=0) / alive, 1) if alive else 0.0,
        "adjusted Rand": round(adjusted_rand(pairs), 3),
        "names": [clusters[id_].name for id_ in largest],  # type: ignore[index]
    }


def adjusted_rand(pairs: Sequence[tuple[str, str]]) -> float:
    """Agreement of two divisions of the same things, (label, label) each: 1 if equal, about 0 by chance; 0 of none.

    Hubert and Arabie 1985."""

    def pairs_within(counts: Counter[Any]) -> float:
        return float(sum(count * (count - 1) / 2 for count in counts.values()))

    together = pairs_within(Counter(pairs))
    by_first = pairs_within(Counter(first for first, _ in pairs))
    by_second = pairs_within(Counter(second for _, second in pairs))
    total = len(pairs) * (len(pairs) - 1) / 2
    expected = by_first * by_second / total if total else 0.0
    most = (by_first + by_second) / 2
    return (together - expected) / (most - expected) if most != expected else 0.0


# --- nights -----------------------------------------------------------------------------------------------------


def nights(record: LifeRecord) -> dict[str, Any]:
    """Tokens of the patrol's answers, and how soon what is due was decided."""
    if not record.nights:
        return {}
    return {
        "tokens a night, mean": round(fmean(night.tokens for night in record.nights)),
        "tokens, largest answer": round(max(night.largest for night in record.nights)),
        "decided": sum(night.decided for night in record.nights),
        "open at the end": record.nights[-1].open,
        f"decided within {DECIDED_WITHIN_DAYS} days %": round(100 * share_decided_in_time(record.nights), 1),
        "refused": dict(record.refused.most_common(5)),
    }


def share_decided_in_time(record: Sequence[Night]) -> float:
    """As if what came first were decided first: the share of all that fell due that was decided within seven days.
    What fell due in the last seven days counts only once it is decided."""
    decided = np.array(list(itertools.accumulate(night.decided for night in record)))
    due = np.maximum.accumulate(decided + [night.open for night in record])
    later = np.append(decided[DECIDED_WITHIN_DAYS:], [decided[-1]] * min(DECIDED_WITHIN_DAYS, len(decided)))
    in_time, before = 0, 0
    for until, done in zip(due[: len(due) - DECIDED_WITHIN_DAYS], later, strict=False):
        in_time += max(0, min(int(until), int(done)) - before)
        before = int(until)
    return in_time / before if before else 1.0
