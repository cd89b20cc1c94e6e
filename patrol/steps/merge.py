"""❼ Small sub-clusters join their nearest sibling, or their root (spec P6 ❼)."""

from __future__ import annotations

from collections import Counter

from madeleine.memory.model import Cluster, ClusterId
from madeleine.patrol.night import Night
from madeleine.patrol.report import StepReport
from madeleine.patrol.steps.siblings import Siblings

SMALL = 2
"""Active memories up to which a sub-cluster is small."""
AT_ONCE = 64
"""Small clusters that are read and compared together; the event loop has its turn in between."""


async def merge(night: Night) -> StepReport:
    await night.read()
    counts = Counter(removed=0, into_sibling=0, into_root=0)
    everyone = night.sub_clusters()
    children = Counter(cluster.parent_id for cluster in everyone)
    siblings = Siblings({one.id: (one.parent_id, night.vector_of(one)) for one in everyone})
    joined: dict[ClusterId, None] = {}
    # None becomes small by it: a cluster that was not loses nothing.
    found = (one for one in everyone if is_small(night, one))
    small = sorted(found, key=lambda one: (night.active_count(one.id), one.name, one.id))
    for start in range(0, len(small), AT_ONCE):
        block = small[start : start + AT_ONCE]
        ids = [cluster.id for cluster in block]
        await night.active_vectors(ids)
        await siblings.compare(ids)
        for cluster in block:
            if not is_small(night, cluster):
                continue
            if await night.members(cluster.id):
                sibling = siblings.nearest(cluster.id)
                await join(night, siblings, cluster, sibling)
                joined[sibling or cluster.parent_id] = None
                counts["into_sibling" if sibling else "into_root"] += 1
            if not children[cluster.id]:
                night.remove(cluster)
                siblings.remove(cluster.id)
                children[cluster.parent_id] -= 1
                counts["removed"] += 1
    # Their means are compared with nothing until now, but for those that `siblings` keeps.
    await night.recompute(joined)
    return StepReport("merge", dict(counts))


def is_small(night: Night, cluster: Cluster) -> bool:
    return night.active_count(cluster.id) <= SMALL and cluster.id not in night.spared


async def join(night: Night, siblings: Siblings, cluster: Cluster, sibling: ClusterId | None) -> None:
    """All its memories move. One that stays, because it has children, keeps the mean that it had last."""
    await night.recompute([cluster.id] if siblings.has_grown(cluster.id) else [])
    moved = await night.active_vectors([cluster.id])
    night.move(await night.members(cluster.id), sibling or cluster.parent_id)
    if sibling and siblings.has_grown(sibling):
        siblings.grow(sibling, moved[cluster.id])
    elif sibling:
        siblings.grow(sibling, (await night.active_vectors([sibling]))[sibling])
