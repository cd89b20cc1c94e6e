"""❻ A sub-cluster that has grown too large is split by topic (spec P6 ❻)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from madeleine.memory.language import Rejected
from madeleine.memory.model import ClusterId, ContentHash
from madeleine.patrol.deciding.answers import Answer, Split
from madeleine.patrol.deciding.checks import checked
from madeleine.patrol.deciding.offer import Kind, Offer
from madeleine.patrol.deciding.offering import SPLIT_ABOVE, split_offer
from madeleine.patrol.matter import Applied, Topic, heaviest_first, present
from madeleine.patrol.night import Night
from madeleine.patrol.ports import PatrolReads
from madeleine.patrol.round import World


class SplitCluster:
    kind: Kind = "split"

    async def waiting(self, world: World, view: PatrolReads) -> list[Topic]:
        counts = [count for count in await view.cluster_counts() if count.active > SPLIT_ABOVE]
        large = await view.clusters([count.cluster_id for count in counts])
        roots = {cluster.id for cluster in large if cluster.is_root}
        return heaviest_first(
            [Topic("split", count.cluster_id, count.active) for count in counts if count.cluster_id not in roots]
        )

    async def offers(self, world: World, view: PatrolReads, topic: Topic) -> list[Offer]:
        found = await view.clusters([ClusterId(topic.key)])
        if not found:
            return []
        [cluster] = found
        active = [subject.id for subject in await view.members(cluster.id) if subject.status == "active"]
        offer = split_offer(cluster, await view.memories(active))
        return [offer] if offer else []

    async def texts(self, world: World, view: PatrolReads, offer: Offer, answer: Answer) -> Mapping[ContentHash, str]:
        return {}

    async def apply(self, night: Night, offer: Offer, answer: Answer, world: World) -> Applied | Rejected:
        cluster = night.clusters.get(offer.cluster_id) if offer.cluster_id else None
        active = night.active_count(cluster.id) if cluster else 0
        is_root = cluster is not None and cluster.is_root
        found = checked(answer, offer, replace(await present(night, offer), is_root=is_root, active=active))
        if isinstance(found, Rejected):
            return found
        assert isinstance(found.answer, Split)
        if cluster is None or not found.answer.parts:
            return Applied({"new_clusters": 0, "moved": 0}, found.left_out)
        made = []
        for part in found.answer.parts:
            new = night.add_sub_cluster(part.name, cluster.parent_id)
            night.move(await night.states(part.memories), new.id)
            made.append(new.id)
        await night.recompute([cluster.id, *made])
        moved = sum(len(part.memories) for part in found.answer.parts)
        return Applied({"new_clusters": len(made), "moved": moved}, found.left_out, frozenset(made))
