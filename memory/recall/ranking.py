"""The query of a recall, the ranked candidates that match it, and the fusion of two rankings (spec L2, O12)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from madeleine.memory.errors import RerankerUnavailable
from madeleine.memory.index import CandidatePool
from madeleine.memory.model import Category, Emotion, MemoryId, Scope
from madeleine.memory.recall.ports import RecallLedger, Reranker
from madeleine.memory.rules.ranking.profiles import RankingProfile
from madeleine.memory.text.normalization import fold_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """`themes`: only memories with all of these. `ranking` None: the configured profile."""

    text: str
    limit: int = 3
    token_budget: int = 2000
    categories: tuple[Category, ...] = ()
    themes: tuple[str, ...] = ()
    emotions: tuple[Emotion, ...] = ()
    ranking: RankingProfile | None = None


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """The matches of a query before any limit. `scores`: best first, in [0, 1]. `tokens`: of all text that a recall may
    return of each. `notices`: what failed, in sentences. `meaning_off`: why only words were compared, or ""."""

    scores: Mapping[MemoryId, float]
    tokens: Mapping[MemoryId, int]
    pool: CandidatePool
    meaning_off: str = ""
    notices: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[MemoryId, ...]:
        return tuple(self.scores)


async def rerank(
    reranker: Reranker, ledger: RecallLedger, scope: Scope, query: str, ranked: RankedCandidates, *, limit: int
) -> RankedCandidates:
    """Score the best `limit` candidates with a cross-encoder (spec L2, step 4). The others follow in their order, with
    scores scaled to stay below. Returns `ranked` with a notice if the model is unavailable."""
    texts = {memory.id: memory.embed_text for memory in await ledger.memories(scope, ranked.ids[:limit])}
    if not texts:
        return ranked
    try:
        new = dict(zip(texts, await reranker.scores(query, list(texts.values())), strict=True))
    except RerankerUnavailable as error:
        return replace(ranked, notices=(*ranked.notices, f"Not re-ranked. {error}"))
    floor = min(new.values())
    order = sorted(ranked.ids, key=lambda id_: (id_ not in new, -new.get(id_, 0.0)))
    return replace(ranked, scores={id_: round(new.get(id_, floor * ranked.scores[id_]), 4) for id_ in order})


def merge_rankings(first: RankedCandidates, second: RankedCandidates) -> RankedCandidates:
    """Fuse both lists by Reciprocal Rank Fusion: scores of two queries are not comparable (spec O12)."""
    notices = tuple(dict.fromkeys((*first.notices, *second.notices)))
    if not first.scores or not second.scores:
        return replace(first if first.scores else second, notices=notices)
    return replace(
        first,
        scores={id_: round(score, 4) for id_, score in fused_by_rrf(first.ids, second.ids)},
        tokens={**first.tokens, **second.tokens},
        meaning_off=first.meaning_off or second.meaning_off,
        notices=notices,
    )


RRF_K = 60
"""Smoothing: how much less a later place counts."""

T = TypeVar("T", bound=Hashable)


def fused_by_rrf(*lists: Sequence[T], k: int = RRF_K) -> list[tuple[T, float]]:
    """Best first: each item with Σ 1 / (k + rank) over the lists that hold it, rank from 1, min-max normalised to
    [0, 1]; 1 for all where all are equal. Equals stand in the order in which they first come."""
    sums: dict[T, float] = {}
    for ranked in lists:
        for rank, item in enumerate(dict.fromkeys(ranked), start=1):
            sums[item] = sums.get(item, 0.0) + 1 / (k + rank)
    if not sums:
        return []
    least, most = min(sums.values()), max(sums.values())
    span = most - least
    scored = [(item, (value - least) / span if span > 0 else 1.0) for item, value in sums.items()]
    return sorted(scored, key=lambda scored_item: -scored_item[1])


NON_INFERABLE_THEME = "non-inferable"
"""The theme of memories that nobody could read out of the code or the surroundings."""
NON_INFERABLE_ADVICE = (
    f"Recall is restricted to memories with the theme {NON_INFERABLE_THEME!r}, which this one lacks: it is kept, and "
    "not recalled. If nobody could find it out by looking at the code or the surroundings (why something was decided, "
    "what the team agreed on, why not otherwise, what other projects know), add the theme by update_memory."
)


def is_non_inferable(themes: Iterable[str]) -> bool:
    return any(fold_text(theme) == NON_INFERABLE_THEME for theme in themes)
