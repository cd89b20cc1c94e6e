"""Ports of recall and search: ledger, index, reranker, activation log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from madeleine.memory.index import MemoryRankingState
from madeleine.memory.keyword_search import (
    KeywordQuery,
    SearchHit,
    SearchSource,
    SearchTagFromMessage,
    TagMatchesInOneSource,
    TagSearchQuery,
)
from madeleine.memory.model import ClusterId, Emotion, EmotionVector, Memory, MemoryId, MemoryValuesBeforeChange, Scope


@dataclass(frozen=True, slots=True)
class MemoryReactivation:
    """A memory was recalled: `times` is added to its reactivation count; a living one's clock is rewound (ruling 2)."""

    memory_id: MemoryId
    times: int
    at: datetime


@dataclass(frozen=True, slots=True)
class PossibleNewerVersionPair:
    """A memory that may say anew what an older one said."""

    newer: MemoryId
    older: MemoryId
    is_proposed: bool
    """To supersede it; else the two only resemble each other."""
    has_superseded_text: bool = False
    """It has superseded the very text of the older one, which was told again since."""


class RecallLedger(Protocol):
    async def memories_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def preferences(
        self, scope: Scope, *, matching_ids: Sequence[MemoryId], limit: int, include_standing: bool
    ) -> list[Memory]:
        """Procedural memories that are not disabled in the being's profile: those in `matching_ids`, in order, whether
        they are true now or were once; where `include_standing`, then those of the others that are living and current,
        by importance, then the newest. At most `limit`."""

    async def current_version_id_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, MemoryId]:
        """The last version of each of the memories that exist: itself where it has no successor (ruling 14)."""

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        """The versions of each of the memories that exist, itself included, the current one last (ruling 14)."""

    async def possible_newer_version_pairs(
        self, scope: Scope, ids: Sequence[MemoryId]
    ) -> list[PossibleNewerVersionPair]:
        """Pairs of a living, current memory and an older one that it may supersede. Starting from `ids`: memories that
        were proposed to supersede one of them, then those that were proposed to supersede these, and so on; one that
        was superseded since is replaced by its current version. Also memories that resemble one of `ids`."""

    async def ranking_state_by_memory_id(
        self, scope: Scope, ids: Sequence[MemoryId]
    ) -> dict[MemoryId, MemoryRankingState]: ...

    async def has_dead_memories(self, scope: Scope) -> bool: ...

    async def passage_ids_by_summary_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[MemoryId]]:
        """Of each of these summaries that has passages (spec L3), these."""


class Reranker(Protocol):
    """A cross-encoder (spec L2, step 4)."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Relevance of each text to the query, in [0, 1], in the order of `texts`. Raises `RerankerUnavailable` if the
        model is unavailable or takes more than a few seconds."""


class ReactivationRecorder(Protocol):
    """Reactivations are written in batches off the request path, and before a patrol reads the counts."""

    def add_reactivations(self, scope: Scope, activations: Sequence[MemoryReactivation]) -> None:
        """Nothing for a scope that does not count."""

    async def flush(self) -> None:
        """Return when everything added is in the ledger."""


class KeywordSearchLedger(Protocol):
    async def newest_matching_texts(self, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
        """At most `query.limit`, newest first, equal times by id."""

    async def recent_texts(self, scope: Scope, sources: Sequence[SearchSource], *, most: int) -> list[str]:
        """The folded texts of each of these sources, at most the `most` newest; of a memory all that is searched."""

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        """As `RecallLedger.all_versions_by_memory_id`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWithMemoryCounts:
    id: ClusterId
    name: str
    parent: str
    is_root: bool
    active: int
    dying: int
    dead: int


class BrowseLedger(Protocol):
    async def memories_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def revision_history(self, scope: Scope, ids: Sequence[MemoryId]) -> list[MemoryValuesBeforeChange]:
        """Earlier versions of these memories, oldest first."""

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        """As `RecallLedger.all_versions_by_memory_id`."""

    async def possible_newer_version_pairs(
        self, scope: Scope, ids: Sequence[MemoryId]
    ) -> list[PossibleNewerVersionPair]:
        """As `RecallLedger.possible_newer_version_pairs`."""

    async def memories_of_cluster(
        self, scope: Scope, cluster_id: ClusterId, *, limit: int, after: str | None
    ) -> list[Memory] | None:
        """Newest first (`happened_at`, then id), dead ones too, those after the memory `after`.

        None if there is no such cluster.
        """

    async def clusters_with_memory_counts(self, scope: Scope) -> list[ClusterWithMemoryCounts]:
        """Roots first, then by the number of active memories, then by name."""

    async def feelings_of_clustered_memories(
        self, scope: Scope
    ) -> list[tuple[ClusterId, tuple[Emotion, ...], EmotionVector | None]]:
        """Labels and told vector of each active memory in a cluster that has either."""


class MessageTagSearchLedger(Protocol):
    async def themes_of_each_recent_memory_with_tag(
        self, scope: Scope, tags: Sequence[SearchTagFromMessage], *, recent: int
    ) -> list[tuple[str, ...]]:
        """Themes of each memory, among the `recent` newest, that has a theme matching a tag."""

    async def tag_matches_of_each_source(self, scope: Scope, query: TagSearchQuery) -> list[TagMatchesInOneSource]:
        """Texts that match a tag or have a related theme: of each source and mask the newest `query.filters.limit`."""

    async def current_version_id_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, MemoryId]:
        """As `RecallLedger.current_version_id_by_memory_id`."""

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        """As `RecallLedger.all_versions_by_memory_id`."""

    async def hits_with_ids(self, scope: Scope, wanted: Sequence[tuple[SearchSource, str]]) -> list[SearchHit]:
        """Hits by source and id, in any order; those erased meanwhile are left out."""
