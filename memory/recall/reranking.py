"""A second look at the best matches by a cross-encoder (spec L2, step 4); without one they keep their order."""

from __future__ import annotations

from dataclasses import replace

from madeleine.memory.errors import RerankerUnavailable
from madeleine.memory.recall.ports import RecallLedger, Reranker
from madeleine.memory.recall.ranked import Ranked
from madeleine.memory.scope import Scope


async def reranked(
    reranker: Reranker, ledger: RecallLedger, scope: Scope, query: str, ranked: Ranked, *, most: int
) -> Ranked:
    """The best `most` by the model's scores, which take the place of their own. The others keep their order behind
    them, with scores scaled to stay below. If the model cannot be had, `ranked` with a notice that says so."""
    texts = {one.id: one.embed_text for one in await ledger.memories(scope, ranked.ids[:most])}
    if not texts:
        return ranked
    try:
        scores = dict(zip(texts, await reranker.scores(query, list(texts.values())), strict=True))
    except RerankerUnavailable as error:
        return replace(ranked, notices=(*ranked.notices, f"Not re-ranked. {error}"))
    floor = min(scores.values())
    old = ranked.score_of()
    new = {id_: round(scores.get(id_, floor * old[id_]), 4) for id_ in ranked.ids}
    tokens = dict(zip(ranked.ids, ranked.tokens, strict=True))
    order = sorted(ranked.ids, key=lambda id_: (id_ not in scores, -scores.get(id_, 0.0)))
    return replace(
        ranked, ids=tuple(order), scores=tuple(new[id_] for id_ in order), tokens=tuple(tokens[id_] for id_ in order)
    )
