"""Newer first among near-equals, before anything is decided (ruling 24, ADR 38)."""

from __future__ import annotations

from collections.abc import Mapping

from madeleine.memory.index import CandidatePool
from madeleine.memory.model import MemoryId, Scope
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.rules.ranking.blended import reading_of_query
from madeleine.memory.rules.ranking.near_equals import asks_for_past, newer_first, say_the_same
from madeleine.memory.rules.storing.supersession import Statement


async def with_newer_first(
    ledger: RecallLedger, scope: Scope, question: str, scores: Mapping[MemoryId, float], pool: CandidatePool
) -> Mapping[MemoryId, float]:
    """`scores`: best first, and so are those returned. A question for the past is left as it is. Texts are read only
    where the order may change."""
    at = {id_: place for place, id_ in enumerate(pool.ids) if id_ in scores}
    linked = ((id_, pool.features[place].may_supersede) for id_, place in at.items())
    older = {id_: before for id_, before in linked if before in at and before is not None}
    if not older or list(newer_first(scores, older)) == list(scores) or asks_for_past(reading_of_query(question)):
        return scores
    memories = await ledger.memories(scope, [*{*older, *older.values()}])
    texts, asked = {memory.id: Statement(memory.scene.action) for memory in memories}, Statement(question)
    return newer_first(
        scores,
        {
            newer: before
            for newer, before in older.items()
            if {newer, before} <= texts.keys()
            and say_the_same(asked, texts[newer], texts[before], pool.holds[at[newer]], pool.holds[at[before]])
        },
    )
