"""❼ Small sub-clusters join their nearest sibling, or their root (spec P6 ❼)."""

from __future__ import annotations

import numpy as np

from memory.model import Cluster, ClusterId
from memory.rules.grouping import SIMILARITY
from patrol.night import Night
from patrol.report import StepReport

SMALL = 2
"""Active memories up to which a sub-cluster is small."""


async def merge(night: Night) -> StepReport:
    await night.read()
    removed = to_sibling = to_root = 0
    for cluster in sorted(night.sub_clusters(), key=lambda c: (night.active_count(c.id), c.name, c.id)):
        if night.active_count(cluster.id) > SMALL or cluster.id in night.spared:
            continue
        members = await night.members(cluster.id)
        if members:
            sibling = nearest_sibling(night, cluster)
            target = sibling.id if sibling else cluster.parent_id
            night.move(members, target)
            await night.recompute([target])
            to_sibling += sibling is not None
            to_root += sibling is None
        if not has_children(night, cluster.id):
            night.remove(cluster)
            removed += 1
    return StepReport("merge", {"removed": removed, "into_sibling": to_sibling, "into_root": to_root})


def nearest_sibling(night: Night, cluster: Cluster) -> Cluster | None:
    """The sub-cluster under the same parent with the highest similarity, if that is above 0.45."""
    own = night.vector_of(night.clusters[cluster.id])
    if own is None:
        return None
    others = [
        (float(np.dot(own, vector)), other)
        for other in night.sub_clusters()
        if other.id != cluster.id and other.parent_id == cluster.parent_id
        if (vector := night.vector_of(other)) is not None
    ]
    best = max(others, key=lambda found: (found[0], found[1].id), default=None)
    return best[1] if best and best[0] > SIMILARITY else None


def has_children(night: Night, id_: ClusterId) -> bool:
    return any(other.parent_id == id_ and other.id != id_ for other in night.sub_clusters())
