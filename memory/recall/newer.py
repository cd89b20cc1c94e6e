"""What is probably true now stands before what was, and nothing is decided (ruling 24, ADR 38)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.rules.ranking.blended import reading_of_query
from madeleine.memory.rules.ranking.near_equals import asks_for_past, newer_first, newer_is_another_matter, older_alone_answers
from madeleine.memory.rules.storing.supersession import Statement

MAX_CORRECTED_MATCHES = 10
"""Best matches for which what was told later of the same is looked for."""


async def with_newer_first(
    ledger: RecallLedger,
    scope: Scope,
    question: str,
    scores: Mapping[MemoryId, float],
    *,
    only_matches: bool,
) -> tuple[Mapping[MemoryId, float], dict[MemoryId, Memory]]:
    """`scores`, best first, with what was proposed to supersede one of the best before it, whether it matches itself or
    not; and those that do not. A question for the past is left as it is. Texts are read only where there are any."""
    best = list(scores)[:MAX_CORRECTED_MATCHES]
    links = await ledger.proposed_later(scope, best) if scores else []
    top = {one.id: one for one in await ledger.memories(scope, best)}
    weak = [(one.id, one.resembles) for one in top.values() if one.resembles in top and one.happened_at > top[one.resembles].happened_at]
    weak = [link for link in weak if link not in links]
    links += weak
    links = [(newer, older) for newer, older in links if newer in scores or not only_matches]
    if not links or asks_for_past(reading_of_query(question)):
        return scores, {}
    memories = {one.id: one for one in await ledger.memories(scope, list({id_ for link in links for id_ in link}))}
    texts, asked = {id_: Statement(one.scene.action) for id_, one in memories.items()}, Statement(question)
    later: defaultdict[MemoryId, list[Memory]] = defaultdict(list)
    for newer, older in links:
        if {newer, older} <= memories.keys() and not older_alone_answers(asked, texts[newer], texts[older]):
            if (newer, older) in weak and newer_is_another_matter(asked, texts[newer], texts[older]): continue
            later[older].append(memories[newer])
    newest_first = {
        older: [one.id for one in sorted(told_later, key=lambda one: (one.happened_at, one.number), reverse=True)]
        for older, told_later in later.items()
    }
    ordered = newer_first(scores, newest_first, max_corrected=MAX_CORRECTED_MATCHES)
    return ordered, {id_: memories[id_] for id_ in ordered if id_ not in scores}
