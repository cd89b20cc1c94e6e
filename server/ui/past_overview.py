"""The start of the page as it was on a date: what the ledger can tell of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from madeleine.memory.model import short_id_of_non_memory
from madeleine.memory.rules.dynamics.truth import beginning_of_validity, was_true_at

if TYPE_CHECKING:  # a server imports them with the memory, behind its first answers
    from madeleine.memory.recall.ports import ClusterWithMemoryCounts
    from madeleine.storage.sql.overview import MemoryOutline


def past_overview_as_json(
    outlines: Sequence[MemoryOutline], clusters: Sequence[ClusterWithMemoryCounts], as_of: datetime
) -> dict[str, Any]:
    """Counts and topics of the memories that were true then. How faded they were, and which topics there were, is not
    kept: topics are those of today."""
    true_then = [outline for outline in outlines if was_true_at(outline, as_of)]
    by_cluster = Counter(outline.cluster_id for outline in true_then)
    return {
        "counts": {
            "true": len(true_then),
            "stored": sum(outline.created_at <= as_of for outline in outlines),
            "superseded": sum(bool(outline.valid_until and outline.valid_until <= as_of) for outline in outlines),
            "later": sum(outline.truth != "retracted" and is_not_yet_true_at(outline, as_of) for outline in outlines),
        },
        "clusters": [
            {"id": short_id_of_non_memory(cluster.id), "name": cluster.name, "count": by_cluster[cluster.id]}
            | ({"is_root": True} if cluster.is_root else {})
            for cluster in clusters
            if by_cluster[cluster.id]
        ],
        "think": [],
    }


def is_not_yet_true_at(outline: MemoryOutline, as_of: datetime) -> bool:
    """Not yet known then."""
    begin = beginning_of_validity(outline)
    return begin is not None and begin > as_of
