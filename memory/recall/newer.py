"""What is probably true now stands before what was, and nothing is decided (ruling 24, ADR 38)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from madeleine.memory.index import RankingIndex
from madeleine.memory.model import Memory, MemoryId, ModelName, Scope, Vector
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.rules.ranking.blended import reading_of_query
from madeleine.memory.rules.ranking.near_equals import asks_for_past, newer_first, says_it_anew
from madeleine.memory.rules.storing.supersession import Statement, could_supersede, supersession_score
from madeleine.memory.word_rarity import rarity_of_words

MAX_LED = 10
"""Best matches before which what was told later is put."""
MAX_COMPARED = 5
"""Of these, matches that are compared with one another."""


@dataclass(frozen=True, eq=False)
class NewerFirst:
    """Of the best matches it puts before each what was told later of the same: what was proposed to supersede it when
    that was stored, whether it matches itself or not, and what of the very best says it anew."""

    ledger: RecallLedger
    index: RankingIndex
    model: ModelName

    async def __call__(
        self, scope: Scope, question: str, scores: Mapping[MemoryId, float], *, only_matches: bool = False
    ) -> tuple[Mapping[MemoryId, float], Mapping[MemoryId, Memory]]:
        """The scores, best first, and the memories among them that did not match. A question for the past is left as it
        is."""
        best = list(scores)[:MAX_LED]
        if not best or asks_for_past(reading_of_query(question)):
            return scores, {}
        links = [
            (newer, older)
            for newer, older in await self.ledger.proposed_later(scope, best)
            if newer in scores or not only_matches
        ]
        compared = best[:MAX_COMPARED]
        if not links and len(compared) < 2:
            return scores, {}
        ids = dict.fromkeys((*compared, *(id_ for link in links for id_ in link)))
        memories = {memory.id: memory for memory in await self.ledger.memories(scope, list(ids))}
        pairs = {(memories[new], memories[old]): True for new, old in links if {new, old} <= memories.keys()}
        for one, other in combinations([memories[id_] for id_ in compared if id_ in memories], 2):
            if _time(one) < _time(other):
                pairs.setdefault((other, one), False)
        newer = await self._newer(scope, Statement(question), pairs)
        led = newer_first(scores, newer, most=MAX_LED)
        return led, {id_: memory for id_, memory in memories.items() if id_ in led and id_ not in scores}

    async def _newer(
        self, scope: Scope, question: Statement, pairs: Mapping[tuple[Memory, Memory], bool]
    ) -> Mapping[MemoryId, Sequence[MemoryId]]:
        """By memory: those that say it anew, the newest first. `pairs`: (newer, older), and whether it was proposed."""
        statements = {memory.id: Statement(memory.scene.action) for pair in pairs for memory in pair}
        alike = {
            (new, old): proposed
            for (new, old), proposed in pairs.items()
            if could_supersede(statements[new.id], statements[old.id])
        }
        if not alike:
            return {}
        vectors = await self._vectors(alike)
        words = {stem: word for _, old in alike for stem, word in statements[old.id].content.items()}
        rarity = await rarity_of_words(self.index, scope, words)
        rarity_before = await rarity_of_words(self.index, scope, words, without_one=True)
        found: defaultdict[MemoryId, list[Memory]] = defaultdict(list)
        for (new, old), proposed in alike.items():
            newer, older = statements[new.id], statements[old.id]
            cosine = float(vectors[new.id] @ vectors[old.id]) if {new.id, old.id} <= vectors.keys() else 0.0
            when_told = rarity | {stem: rarity_before[stem] for stem in newer.content if stem in rarity_before}
            score = supersession_score(newer, older, cosine=cosine, rarity=when_told, nearest=False)
            if says_it_anew(question, newer, older, score=score, proposed=proposed):
                found[old.id].append(new)
        return {id_: [one.id for one in sorted(later, key=_time, reverse=True)] for id_, later in found.items()}

    async def _vectors(self, pairs: Mapping[tuple[Memory, Memory], bool]) -> dict[MemoryId, Vector]:
        hashes = {memory.id: memory.content_hash for pair in pairs for memory in pair}
        vectors = await self.ledger.vectors(self.model, list(hashes.values()))
        return {id_: vectors[hash_] for id_, hash_ in hashes.items() if hash_ in vectors}


def _time(memory: Memory) -> tuple[object, ...]:
    return memory.happened_at, memory.created_at, memory.number
