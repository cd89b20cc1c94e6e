"""Finds the memory that a new one may supersede (ruling 14). It changes nothing: an act decides."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import IndexPoint, WordIdfSource, WritableIndex
from madeleine.memory.model import LIVING, Memory, MemoryId, Scope, Vector
from madeleine.memory.rules.storing.supersession import (
    MAX_PROPOSAL_CANDIDATES,
    MIN_PROPOSAL_COSINE,
    Statement,
    could_supersede,
    rarity_of_word,
    supersession_score,
)

_UNUSED_WORD = "qzxvjwkq"
logger = logging.getLogger(__name__)


class ProposalIndex(WritableIndex, WordIdfSource, Protocol):
    """The methods of the index that a search for a superseded memory needs."""


class ProposalLedger(Protocol):
    async def memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...


@dataclass(frozen=True, eq=False)
class SupersededMemorySearch:
    """Read-only; part of a store."""

    ledger: ProposalLedger
    index: ProposalIndex

    async def __call__(self, scope: Scope, point: IndexPoint) -> Memory | None:
        """The earlier current memory that the new one most likely takes the place of. None if there is none, while the
        index cannot be read, and for a text that the embedding model does not read."""
        if point.vector is None:
            return None
        try:
            return await self._find(scope, point.memory, point.vector)
        except IndexUnavailable as error:
            logger.warning("Storing without a search for what may be superseded: %s", error)
            return None

    async def _find(self, scope: Scope, memory: Memory, vector: Vector) -> Memory | None:
        near = await self.index.nearest(scope, vector, limit=MAX_PROPOSAL_CANDIDATES, statuses=LIVING)
        cosines = {id_: cosine for id_, cosine in near if cosine >= MIN_PROPOSAL_COSINE}
        earlier = [
            other
            for other in (await self.ledger.memories(scope, list(cosines)) if cosines else [])
            if other.truth == "current" and not other.compressed and other.happened_at < memory.happened_at
        ]
        new, old = Statement(memory.scene.action), {other.id: Statement(other.scene.action) for other in earlier}
        comparable = [other for other in earlier if could_supersede(new, old[other.id])]
        rarity = await self._rarity(scope, {s: w for other in comparable for s, w in old[other.id].content.items()})
        scores = {
            other.id: supersession_score(
                new, old[other.id], cosine=cosines[other.id], rarity=rarity, nearest=other.id == near[0][0]
            )
            for other in comparable
        }
        best = max(comparable, key=lambda other: scores[other.id], default=None)
        return best if best is not None and scores[best.id] > 0 else None

    async def _rarity(self, scope: Scope, words: Mapping[str, str]) -> dict[str, float]:
        """In [0, 1], by stem, of the words that the index has; `words` by stem."""
        if not words:
            return {}
        # A word that no memory has is as rare as a word can be.
        *idf, greatest = await self.index.idf(scope, [*words.values(), _UNUSED_WORD])
        known = ((stem, value) for stem, value in zip(words, idf, strict=True) if 0 < value < greatest)
        return {stem: rarity_of_word(value, greatest) for stem, value in known}
