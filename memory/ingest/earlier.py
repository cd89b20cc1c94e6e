"""What was told before of what a new scene tells: what it supersedes, resembles, or says again (rulings 13, 14)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from madeleine.memory.embedding import Embedder
from madeleine.memory.index import IndexPoint
from madeleine.memory.ingest.ports import StoreScenesLedger
from madeleine.memory.ingest.store_plan import StorePlan, ToldAgain, wording_key
from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, Scope
from madeleine.memory.rules.dynamics.plans import dated_as_version
from madeleine.memory.rules.dynamics.truth import require_current
from madeleine.memory.rules.storing.similar_wording import resemblances_to_texts


async def as_version(
    ledger: StoreScenesLedger, scope: Scope, memory: Memory, supersedes: MemoryId | None
) -> tuple[Memory, Memory | None, datetime | None]:
    """(memory, what it supersedes, since when) with the memory's dates as a version; an unknown memory to supersede is
    refused at the commit. Raises `NotCurrent` for a plan of what is not current."""
    if supersedes is None:
        return memory, None, None
    known = await ledger.memories(scope, [supersedes])
    if not known:
        return memory, None, memory.happened_at
    version, since = dated_as_version(memory, known[0], memory.created_at)
    if since is None:
        require_current(known[0])
    return version, known[0], since


async def find_told_again(
    ledger: StoreScenesLedger, scope: Scope, memory: Memory, near: Sequence[tuple[Memory, float]]
) -> Memory | ToldAgain | None:
    """The living memory that has absorbed the text of the new one; else what said it, if that is not true any more."""
    words = wording_key(memory)
    told = (one for one, _ in near if one.truth != "current" or one.absorbed_into is not None)
    earlier = latest = next((one for one in told if wording_key(one) == words), None)
    if earlier is None or latest is None:
        return None
    while latest.truth == "current" and latest.absorbed_into is not None:
        [latest] = await ledger.memories(scope, [latest.absorbed_into])
    if latest.truth == "current":
        return latest if latest.status in LIVING_STATUSES and not latest.compressed else None
    if latest.truth == "retracted":
        return ToldAgain(earlier, None)
    current = await ledger.current_versions(scope, [latest.id])
    return ToldAgain(earlier, next(iter(await ledger.memories(scope, [*current.values()])), None))


async def find_most_similar(
    ledger: StoreScenesLedger,
    embedder: Embedder,
    point: IndexPoint,
    known: Sequence[Memory],
    plan: StorePlan,
    *,
    resembling: float,
) -> MemoryId | None:
    """The one that resembles the new one most, if it does so enough."""
    if not known:
        return None
    vectors = plan.vectors()
    if point.vector is not None:
        missing = {other.content_hash for other in known} - vectors.keys()
        vectors |= await ledger.vectors(embedder.model, sorted(missing))
    cosines = embedder.space.readable_cosines(point.vector, [vectors.get(one.content_hash) for one in known])
    scores = resemblances_to_texts(point.memory.scene.action, [other.scene.action for other in known], cosines)
    best = max(range(len(known)), key=scores.__getitem__)
    return known[best].id if scores[best] >= resembling else None
