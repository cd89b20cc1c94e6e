"""Finds the memory that a new one may supersede (ruling 14). It changes nothing: an act decides."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import WordIdfSource
from madeleine.memory.model import LIVING, Memory, Scope
from madeleine.memory.rules.storing.supersession import (
    MAX_PROPOSAL_CANDIDATES,
    MIN_PROPOSAL_COSINE,
    Statement,
    could_supersede,
    supersession_score,
)
from madeleine.memory.word_rarity import rarity_of_words

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SupersededMemorySearch:
    """Read-only; part of a store."""

    index: WordIdfSource

    async def __call__(self, scope: Scope, memory: Memory, near: Sequence[tuple[Memory, float]]) -> Memory | None:
        """The earlier current memory that the new one most likely takes the place of, of those `near` with their
        cosines. None if there is none, and while the index cannot be read."""
        try:
            return await self._find(scope, memory, near)
        except IndexUnavailable as error:
            logger.warning("Storing without a search for what may be superseded: %s", error)
            return None

    async def _find(self, scope: Scope, memory: Memory, near: Sequence[tuple[Memory, float]]) -> Memory | None:
        living = [(other, cosine) for other, cosine in near if other.status in LIVING]
        nearest = sorted(living, key=lambda pair: -pair[1])[:MAX_PROPOSAL_CANDIDATES]
        cosines = {other.id: cosine for other, cosine in nearest if cosine >= MIN_PROPOSAL_COSINE}
        earlier = [
            other
            for other, _ in nearest
            if other.id in cosines
            and other.truth == "current"
            and not other.compressed
            and other.happened_at < memory.happened_at
        ]
        new, old = Statement(memory.scene.action), {other.id: Statement(other.scene.action) for other in earlier}
        comparable = [other for other in earlier if could_supersede(new, old[other.id])]
        rarity = await rarity_of_words(
            self.index, scope, {s: w for other in comparable for s, w in old[other.id].content.items()}
        )
        scores = {
            other.id: supersession_score(
                new, old[other.id], cosine=cosines[other.id], rarity=rarity, nearest=other is nearest[0][0]
            )
            for other in comparable
        }
        best = max(comparable, key=lambda other: scores[other.id], default=None)
        return best if best is not None and scores[best.id] > 0 else None
