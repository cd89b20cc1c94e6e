"""❻ A sub-cluster that has grown too large is split by topic (spec P6 ❻)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from madeleine.memory.model import ClusterId
from madeleine.patrol.context import PatrolContext
from madeleine.patrol.deciding.answers import Split
from madeleine.patrol.deciding.checks import CurrentState
from madeleine.patrol.deciding.decision_type import DecisionType
from madeleine.patrol.deciding.requests import SPLIT_ABOVE_MEMORIES, DecisionRequest, split_request
from madeleine.patrol.unit_of_work import UnitOfWork


class SplitCluster(DecisionType[Split]):
    kind = "split"

    async def pending(self, context: PatrolContext) -> list[str]:
        counts = [count for count in await context.reads.cluster_counts() if count.active > SPLIT_ABOVE_MEMORIES]
        clusters = await context.reads.clusters([count.cluster_id for count in counts])
        roots = {cluster.id for cluster in clusters if cluster.is_root}
        counts.sort(key=lambda count: (-count.active, count.cluster_id))
        return [count.cluster_id for count in counts if count.cluster_id not in roots]

    async def requests(self, context: PatrolContext, key: str) -> list[DecisionRequest]:
        clusters = await context.reads.clusters([ClusterId(key)])
        if not clusters:
            return []
        active = [state.id for state in await context.reads.members(ClusterId(key)) if state.status == "active"]
        request = split_request(clusters[0], await context.reads.memories(active))
        return [request] if request else []

    async def current(self, work: UnitOfWork, request: DecisionRequest) -> CurrentState:
        current = await super().current(work, request)
        cluster = work.clusters.get(request.cluster_id) if request.cluster_id else None
        return replace(current, is_root=cluster.is_root, active=work.active_count(cluster.id)) if cluster else current

    async def apply(
        self, context: PatrolContext, work: UnitOfWork, request: DecisionRequest, answer: Split, current: CurrentState
    ) -> Mapping[str, int]:
        new_clusters = []
        if answer.parts and request.cluster_id:
            parent = work.clusters[request.cluster_id].parent_id
            for part in answer.parts:
                cluster = work.add_sub_cluster(part.name, parent)
                work.move(await work.states(part.memories), cluster.id)
                new_clusters.append(cluster.id)
            await work.recompute([request.cluster_id, *new_clusters])
        context.split_off.update(new_clusters)
        return {"new_clusters": len(new_clusters), "moved": sum(len(part.memories) for part in answer.parts)}
