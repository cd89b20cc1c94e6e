"""What needs a mind is decided: by a language model, or by the agent that called (ruling 10), or it waits."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from madeleine.memory.errors import LanguageModelUnavailable, UnusableAnswer
from madeleine.memory.language import Rejected
from madeleine.memory.model import ContentHash, Vector
from madeleine.memory.patrol_records import DecisionRequestId, StoredDecisionRequest
from madeleine.patrol.deciding.answers import Answer, Consolidation, Diary, Split, Summary
from madeleine.patrol.deciding.decide import decide
from madeleine.patrol.deciding.decision import Decision, answer_of
from madeleine.patrol.deciding.offer import Kind, Offer
from madeleine.patrol.deciding.prompts import for_agent
from madeleine.patrol.matter import Applied, Matter, topic_of
from madeleine.patrol.night import Evening
from madeleine.patrol.report import STEP_OF, Decided, StepReport
from madeleine.patrol.round import Round, World
from madeleine.patrol.steps.compress import Compress
from madeleine.patrol.steps.consolidate import Consolidate
from madeleine.patrol.steps.diary import WriteDiary
from madeleine.patrol.steps.split import SplitCluster

MATTERS: Mapping[str, Matter] = {
    "consolidate": Consolidate(), "split": SplitCluster(), "compress": Compress(), "diary": WriteDiary()
}  # fmt: skip
HANDED_OUT: Sequence[Kind] = ("diary", "consolidate", "split", "compress")
ASKED_AT_ONCE = 4
ANSWER_CHARS = 24_000
"""Of the offers in a tool's answer: some 8,000 tokens, as ids are costly. One offer is always given."""


async def settle(round_: Round, matter: Matter) -> StepReport:
    """By the language model, as far as tokens and time reach; what it cannot decide is left as it was."""
    name = STEP_OF[matter.kind]
    topics = await matter.waiting(round_.world, round_.view)
    left = deque(topics)
    offers: list[Offer] = []
    notes: list[str] = []
    while left or offers:
        while left and len(offers) < ASKED_AT_ONCE:
            offers += await matter.offers(round_.world, round_.view, left.popleft())
        some, offers = offers[:ASKED_AT_ONCE], offers[ASKED_AT_ONCE:]
        why = f"the step has had its {round_.world.config.step_seconds:g} s" if round_.out_of_time else ""
        undecided = some
        if not why:
            undecided, why = await _decide_some(round_, matter, some, notes)
        if why:
            waiting = {*map(topic_of, (*undecided, *offers))}
            notes.append(f"{len(waiting) + len(left)} wait for the next patrol: {why.rstrip('.')}.")
            break
        round_.tell(len(topics) - len(left), len(topics))
    return StepReport(name, dict(round_.counts), notes=tuple(notes))


async def _decide_some(
    round_: Round, matter: Matter, offers: Sequence[Offer], notes: list[str]
) -> tuple[list[Offer], str]:
    """Those that the language model was not there for, and why. Counts as it goes; raises what else went wrong after
    what was decided is applied."""
    counts = round_.counts
    answers = await asyncio.gather(*(_ask(round_, offer) for offer in offers), return_exceptions=True)
    undecided: list[Offer] = []
    why = ""
    wrong: BaseException | None = None
    for offer, answer in zip(offers, answers, strict=True):
        match answer:
            case UnusableAnswer():
                counts["unusable"] += 1
                notes.append(str(answer))
            case LanguageModelUnavailable():
                undecided.append(offer)
                why = answer.reason
            case BaseException():
                wrong = answer
            case _:
                applied = await apply(round_, matter, offer, answer)
                if isinstance(applied, Rejected):
                    counts["unusable"] += 1
                    notes.append(applied.reason)
                else:
                    counts.update(applied.counts)
                    counts["decided"] += 1
    if wrong:
        raise wrong
    return undecided, why


async def _ask(round_: Round, offer: Offer) -> Answer:
    assert round_.model is not None
    if not offer.needs_a_mind:
        return Consolidation()
    return await decide(round_.model, offer)


async def apply(
    round_: Round, matter: Matter, offer: Offer, answer: Answer, *, settles: DecisionRequestId | None = None
) -> Applied | Rejected:
    """In a transaction of its own; no model is called meanwhile."""
    answer = cleaned(answer, round_.world)
    vectors: Mapping[ContentHash, Vector] = {}
    if texts := await matter.texts(round_.world, round_.view, offer, answer):
        vectors = (await round_.world.embed(texts.values())).vectors
    async with round_.night(STEP_OF[offer.kind], Evening(vectors=vectors)) as night:
        if offer.cluster_id is not None:
            await night.read([offer.cluster_id])
        found = await matter.apply(night, offer, answer, round_.world)
        if not isinstance(found, Rejected) and settles is not None:
            night.settle(settles)
    round_.made |= found.made if isinstance(found, Applied) else frozenset()
    return found


def cleaned(answer: Answer, world: World) -> Answer:
    """Without secrets in what was written."""
    match answer:
        case Split():
            return Split(tuple(replace(part, name=world.without_secrets(part.name)) for part in answer.parts))
        case Diary():
            points = tuple(world.without_secrets(point) for point in answer.think_md)
            return Diary(world.without_secrets(answer.diary), points)
        case Summary():
            return Summary(world.without_secrets(answer.summary))
        case _:
            return answer


# --- the calling agent ------------------------------------------------------------------------------------------


async def hand_out(round_: Round) -> tuple[list[Offer], int]:
    """What waits, as much as fits into an answer, kept so that a decision can be held against it; and on how many
    topics more there may be something to decide. An offer that was made before and says the same is given again. A
    rehearsal only counts."""
    open_before = [Offer.from_json(one.body) for one in await round_.view.open_requests()]
    offers: list[Offer] = []
    room = 0 if round_.rehearses else ANSWER_CHARS
    waiting = 0
    for kind in HANDED_OUT:
        for topic in await MATTERS[kind].waiting(round_.world, round_.view):
            if room <= 0:
                waiting += 1
                continue
            for new in await MATTERS[kind].offers(round_.world, round_.view, topic):
                offer = next((one for one in open_before if replace(one, id=new.id) == new), new)
                if not offer.needs_a_mind:
                    continue
                size = len(json.dumps(for_agent(offer), ensure_ascii=False))
                if offers and size > room:
                    room = 0
                    waiting += 1
                    break
                offers.append(offer)
                room -= size
    if fresh := [offer for offer in offers if offer not in open_before]:
        kept = [StoredDecisionRequest(id=offer.id, topic=topic_of(offer), body=offer.as_json()) for offer in fresh]
        await round_.world.ledger.store_requests(round_.scope, kept, at=round_.world.now())
    return offers, waiting


async def carry_out(round_: Round, decisions: Sequence[Decision]) -> list[Decided]:
    """Each by itself: one that cannot be used changes nothing and does not keep the others from counting."""
    kept = {one.id: one for one in await round_.view.offers([DecisionRequestId(one.offer) for one in decisions])}
    found: list[Decided] = []
    for done, decision in enumerate(decisions, start=1):
        found.append(await _carry_out(round_, decision, kept.get(DecisionRequestId(decision.offer))))
        if not found[-1].refused:
            kept.pop(DecisionRequestId(decision.offer), None)
        round_.tell(done, len(decisions))
    return found


async def _carry_out(round_: Round, decision: Decision, kept: StoredDecisionRequest | None) -> Decided:
    if kept is None or kept.decided_by is not None:
        why = "was decided before" if kept else "is not known: it was never made, or too long ago"
        return Decided(
            offer=decision.offer,
            refused=f"This offer {why}. Call run_patrol with decisions: [] for what waits now.",
        )
    offer = Offer.from_json(kept.body)
    answer = answer_of(decision, offer)
    applied = (
        answer
        if isinstance(answer, Rejected)
        else await apply(round_, MATTERS[offer.kind], offer, answer, settles=kept.id)
    )
    if isinstance(applied, Rejected):
        return Decided(offer=decision.offer, refused=applied.reason)
    return Decided(offer=decision.offer, counts=applied.counts, left_out=applied.left_out)
