"""What is probably true now stands before what was, and nothing is decided (ruling 24, ADR 38)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.rules.dynamics.plans import planned_since
from madeleine.memory.rules.dynamics.truth import true_since
from madeleine.memory.rules.ranking.blended import analyse_query
from madeleine.memory.rules.ranking.near_equals import (
    asks_for_past,
    may_both_be_true,
    named_by_one_alone,
    only_older_answers_question,
    order_newer_before_older,
)
from madeleine.memory.rules.storing.statements import Statement

MAX_MATCHES_CHECKED_FOR_NEWER = 10
"""Best matches for which what was told later of the same is looked for."""


async def put_newer_memories_first(
    ledger: RecallLedger,
    scope: Scope,
    question: str,
    scores: Mapping[MemoryId, float],
    *,
    only_matches: bool,
    now: datetime,
) -> tuple[Mapping[MemoryId, float], dict[MemoryId, Memory]]:
    """`scores`, best first: before one of the best stands what was proposed to supersede it, whether it matches itself
    or not, and what resembles it, was told later and is one of the best itself; and those that do not match.

    A question for the past is left as it is. Until its day a plan comes behind what is true until then, unless the
    question names what it alone tells of. Texts are read only where there are any."""
    links = await ledger.told_later(scope, list(scores)[:MAX_MATCHES_CHECKED_FOR_NEWER]) if scores else []
    links = [link for link in links if link.newer in scores or not only_matches]
    if not links or asks_for_past(analyse_query(question)):
        return scores, {}
    ids = list({id_ for link in links for id_ in (link.newer, link.older)})
    memories = {one.id: one for one in await ledger.memories(scope, ids)}
    texts, asked = {id_: Statement(one.scene.action) for id_, one in memories.items()}, Statement(question)
    later: defaultdict[MemoryId, list[Memory]] = defaultdict(list)
    for link in links:
        if not {link.newer, link.older} <= memories.keys():
            continue
        newer, older = memories[link.newer], memories[link.older]
        if link.has_superseded_text:
            later[older.id].append(newer)
            continue
        is_other = only_older_answers_question if link.is_proposed else may_both_be_true
        if is_other(asked, texts[newer.id], texts[older.id]):
            continue
        if planned_since(older, newer, now):
            if not named_by_one_alone(asked, texts[newer.id], texts[older.id]):
                later[newer.id].append(older)
        elif true_since(newer) > true_since(older):
            later[older.id].append(newer)
    newest_first = {
        older: [one.id for one in sorted(told_later, key=lambda one: (true_since(one), one.number), reverse=True)]
        for older, told_later in later.items()
    }
    ordered = order_newer_before_older(scores, newest_first, max_corrected=MAX_MATCHES_CHECKED_FOR_NEWER)
    return ordered, {id_: memories[id_] for id_ in ordered if id_ not in scores}
