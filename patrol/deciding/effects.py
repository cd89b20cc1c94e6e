"""What memories become by a consolidation (spec P6 ❹, rulings 3 and 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from madeleine.memory.model import DatedAction, Memory, MemoryId, WhenItem, parse_moment, when_date
from madeleine.memory.rules.dynamics.decay import flagged
from madeleine.patrol.deciding.answers import Consolidation
from madeleine.patrol.deciding.checks import Present, change_since
from madeleine.patrol.deciding.offer import Offer, cut

BONUS = 0.05
"""Added to a survivor's importance, once a merge (spec P6 ❹)."""
ACTION = 2_000
"""Characters of an action that a timeline keeps."""


def consolidated(answer: Consolidation, offer: Offer, memories: Mapping[MemoryId, Memory]) -> list[Memory]:
    """Those that change, as they are to be. `answer` was checked against `memories`. Every offered memory that is still
    as it was offered is fresh no longer. A survivor's embed text changes with its timeline."""
    changed: dict[MemoryId, Memory] = {}
    for merge in answer.merges:
        absorbed = [memories[id_] for id_ in merge.absorbed]
        changed[merge.survivor] = survivor_of(memories[merge.survivor], absorbed)
        changed |= {one.id: replace(dead(one), absorbed_into=merge.survivor) for one in absorbed}
    changed |= {id_: dead(memories[id_]) for id_ in answer.make_dead}
    present = Present(memories)
    for one in offer.memories:
        if one.id not in changed and not change_since(one.id, offer, present) and memories[one.id].fresh:
            changed[one.id] = replace(memories[one.id], fresh=False)
    return list(changed.values())


def survivor_of(survivor: Memory, absorbed: Sequence[Memory]) -> Memory:
    """Keeps its words and when it happened; takes over the others' histories and reactivations, and is as lately
    activated as the latest of them."""
    importance = min(1.0, survivor.importance + BONUS)
    session_count = min(memory.session_count for memory in (survivor, *absorbed))
    return replace(
        survivor,
        scene=replace(survivor.scene, when=merged_when(survivor, absorbed)),
        importance=importance,
        session_count=session_count,
        reactivation_count=survivor.reactivation_count + sum(memory.reactivation_count for memory in absorbed),
        status=flagged(survivor.status, importance=importance, session_count=session_count, pinned=survivor.pinned),
        fresh=False,
    )


def dead(memory: Memory) -> Memory:
    """Its reactivations start again, so that it comes back only if it is recalled from now on (ruling 3)."""
    return replace(memory, status="dead", reactivation_count=0, fresh=False)


def merged_when(survivor: Memory, absorbed: Sequence[Memory]) -> tuple[WhenItem, ...]:
    """The survivor's own entries as they are, then the histories of the others by date, what is not a date last
    (spec P4). Nothing twice, and not what the survivor says itself of that day. A survivor without entries begins with
    its day, for the first entry is read as a memory's date."""
    own = {(when_date(item), item.action) for item in history(survivor)}
    told = {(when_date(item), item.action): item for memory in absorbed for item in history(memory)}
    new = sorted((key for key in told if key not in own), key=lambda key: (parse_moment(key[0]) is None, key))
    first = survivor.scene.when or ((survivor.happened_at.date().isoformat(),) if new else ())
    return (*first, *(told[key] for key in new))


def history(memory: Memory) -> list[DatedAction]:
    """What it tells, with dates: its action on each of its plain dates, on the day it happened if it has none; and
    what it took over before."""
    when = memory.scene.when
    dates = [when_date(item) for item in when if isinstance(item, str)] or [memory.happened_at.date().isoformat()]
    own = [DatedAction(date, cut(memory.scene.action, ACTION)) for date in dates]
    return [*own, *(DatedAction(i.date, cut(i.action, ACTION)) for i in when if not isinstance(i, str))]
