"""Decisions are made by a language model, or offered to the calling agent (ruling 10), or stay pending."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import timedelta
from typing import Any

from madeleine.memory.embedding import VectorByContentHash
from madeleine.memory.errors import LanguageModelUnavailable, UnusableAnswer
from madeleine.memory.language_model import MeteredModel, RejectedModelAnswer
from madeleine.memory.model import Memory, MemoryId, short_id_of_non_memory
from madeleine.memory.patrol_records import DecisionRequestId, StoredDecisionRequest
from madeleine.memory.rules.dynamics.windows import is_still_to_come
from madeleine.patrol.context import PatrolRunContext
from madeleine.patrol.deciding.answers import (
    AgentDecision,
    CurrentOfferedMemories,
    DecisionAnswer,
    DecisionAnswerSchema,
    DecisionHandler,
    RejectedAgentDecision,
)
from madeleine.patrol.deciding.compress import SessionSummaryAnswer, SessionSummaryDecisionHandler
from madeleine.patrol.deciding.consolidate import ConsolidationAnswer, ConsolidationDecisionHandler
from madeleine.patrol.deciding.diary import DiaryDecisionHandler
from madeleine.patrol.deciding.passages import (
    MAX_FADED_EPISODES_JOINED_PER_PATROL,
    MAX_JOINABLE_SCENE_CHARS,
    MAX_OVERDUE_SESSIONS_READ,
    MAX_PASSAGES,
    compression_requests_with_passages,
    is_joinable_episode,
    was_recalled_lately,
)
from madeleine.patrol.deciding.rendering import decision_prompt, decision_request_as_json_for_agent
from madeleine.patrol.deciding.repair import NoteRepairDecisionHandler
from madeleine.patrol.deciding.requests import (
    DECISION_REQUEST_LIMITS_FOR_AGENT,
    DecisionKind,
    DecisionRequest,
    topic_key_of,
)
from madeleine.patrol.deciding.split import ClusterSplitDecisionHandler
from madeleine.patrol.deciding.supersede import SupersessionDecisionHandler
from madeleine.patrol.report import AgentDecisionResult, PatrolStepName, PatrolStepReport
from madeleine.patrol.unit_of_work import PreparedStepInputs

DECISION_HANDLERS: Mapping[str, type[DecisionHandler[Any]]] = {
    "consolidate": ConsolidationDecisionHandler,
    "split": ClusterSplitDecisionHandler,
    "supersede": SupersessionDecisionHandler,
    "repair": NoteRepairDecisionHandler,
    "compress": SessionSummaryDecisionHandler,
    "diary": DiaryDecisionHandler,
}
"""By the name of their step."""
DECISION_OFFER_ORDER: Sequence[DecisionKind] = ("diary", "supersede", "repair", "consolidate", "split", "compress")
MAX_CONCURRENT_MODEL_CALLS = 4
MAX_OFFERED_DECISION_REQUESTS_BYTES = 24_000
"""Of the requests in a detailed answer: some 8,000 tokens, as ids are costly. One request is always given."""
MAX_BRIEF_DECISION_REQUESTS_BYTES = 6_500
"""With guidance and what a patrol did less than 3,000 tokens (ruling 23)."""
MAX_TOPICS_OFFERED_A_DAY: Mapping[DecisionKind, int] = {"split": 1, "compress": 1}
"""The largest cluster, and the oldest session, that an agent is asked about in a day: nothing is lost while others
wait, and a patrol divides the broadest clusters and joins the scenes of overdue sessions by itself (ADR 86)."""
MAX_DECISION_REQUESTS_PER_KIND = 20
MAX_CLUSTERS_EXAMINED_FOR_DECISIONS = 50
"""Clusters, besides those that are offered, whose fresh memories are looked through in one patrol: most need no
decision, and do not wait for one."""


# --- a language model -------------------------------------------------------------------------------------------


async def decide_pending_with_model(context: PatrolRunContext, step: PatrolStepName) -> PatrolStepReport:
    """Ask the language model to decide every pending item, until the token budget or the time limit is reached.
    Undecided items stay unchanged and are retried at the next patrol."""
    decision_type = DECISION_HANDLERS[step](context)
    keys = deque(await decision_type.keys_that_may_need_decision())
    total = len(keys)
    requests: list[DecisionRequest] = []
    notes: list[str] = []
    while keys or requests:
        while keys and len(requests) < MAX_CONCURRENT_MODEL_CALLS:
            requests += await decision_type.build_requests_for_key(keys.popleft())
        batch, requests = requests[:MAX_CONCURRENT_MODEL_CALLS], requests[MAX_CONCURRENT_MODEL_CALLS:]
        undecided, reason = batch, f"the step has had its {context.services.config.step_seconds:g} s"
        if not context.is_step_out_of_time:
            undecided, reason = await _decide_batch_with_model(context, batch, notes)
        if reason:
            pending = len(keys) + len({request.topic_key for request in (*undecided, *requests)})
            notes.append(f"{pending} pending until the next patrol: {reason.rstrip('.')}.")
            break
        context.report_progress(total - len(keys), total)
    return PatrolStepReport(step, dict(context.counts), notes=tuple(notes))


async def _decide_batch_with_model(
    context: PatrolRunContext, requests: Sequence[DecisionRequest], notes: list[str]
) -> tuple[list[DecisionRequest], str]:
    """Those that no language model was available for, and why. Updates the step's counts; any other error is raised
    after the answers are applied."""
    assert context.language_model is not None
    calls = (ask_model_to_decide(context.language_model, request) for request in requests)
    undecided: list[DecisionRequest] = []
    reason = ""
    failure: BaseException | None = None
    for request, answer in zip(requests, await asyncio.gather(*calls, return_exceptions=True), strict=True):
        match answer:
            case UnusableAnswer():
                context.counts["unusable"] += 1
                notes.append(str(answer))
            case LanguageModelUnavailable():
                undecided.append(request)
                reason = answer.reason
            case BaseException():
                failure = answer
            case _:
                applied = await apply_decision_answer(context, request, answer)
                if isinstance(applied, RejectedModelAnswer):
                    context.counts["unusable"] += 1
                    notes.append(applied.reason)
                else:
                    context.counts.update(applied.counts)
                    context.counts["decided"] += 1
    if failure:
        raise failure
    return undecided, reason


async def ask_model_to_decide(model: MeteredModel, request: DecisionRequest) -> DecisionAnswer:
    """An answer that fits its request, in memory ids; it is still to be checked against the memories as they are when
    it is applied. Raises `LanguageModelUnavailable`, `UnusableAnswer`."""
    if not request.has_choice:
        return ConsolidationAnswer()

    answer_type = DECISION_HANDLERS[request.kind].answer_type

    def check(raw: DecisionAnswerSchema) -> DecisionAnswer | RejectedModelAnswer:
        answer = answer_type.from_model_answer(raw, request)
        result = answer if isinstance(answer, RejectedModelAnswer) else answer.normalized_answer_or_rejection(request)
        return (
            RejectedModelAnswer(_with_numbers_for_ids(result.reason, request))
            if isinstance(result, RejectedModelAnswer)
            else result
        )

    return await model.answer_prompt(decision_prompt(request), answer_type.schema, check)


def _with_numbers_for_ids(reason: str, request: DecisionRequest) -> str:
    """With the numbers that the model knows for the ids that it does not."""
    for number, memory in enumerate(request.memories, start=1):
        reason = reason.replace(repr(memory.id), str(number))
    return reason


async def merge_undecided_episodes_into_passages(context: PatrolRunContext) -> PatrolStepReport | None:
    """Join to passages what has faded, and of the sessions beyond the threshold what was not recalled lately, where
    nobody has decided about them (spec L3); None where there is nothing."""
    reads, now = context.reads, context.services.now()
    await _join_episodes_into_stored_passages(
        context,
        await reads.dying_episodes_to_join(
            max_chars=MAX_JOINABLE_SCENE_CHARS, limit=MAX_FADED_EPISODES_JOINED_PER_PATROL
        ),
    )
    overdue = await SessionSummaryDecisionHandler(context).overdue_unsummarised_session_ids()
    for key in overdue[:MAX_OVERDUE_SESSIONS_READ]:
        if context.counts["summaries"] >= MAX_PASSAGES or context.is_step_out_of_time:
            break
        session = await reads.summarisable_session_memories(key)
        joinable = [
            one
            for one in session
            if is_joinable_episode(one) and not (was_recalled_lately(one, now) or is_still_to_come(one, now))
        ]
        await _join_episodes_into_stored_passages(context, joinable)
    notes = ("What nobody had decided about was joined to passages by session and day.",)
    return PatrolStepReport("compress", dict(context.counts), notes=notes) if context.counts else None


async def _join_episodes_into_stored_passages(context: PatrolRunContext, episodes: Sequence[Memory]) -> None:
    for request, passage in compression_requests_with_passages(episodes):
        if context.is_step_out_of_time:
            break
        applied = await apply_decision_answer(context, request, SessionSummaryAnswer(passage, is_passage=True))
        if isinstance(applied, AgentDecisionResult):
            context.counts.update(applied.counts)


# --- both -------------------------------------------------------------------------------------------------------


async def apply_decision_answer(
    context: PatrolRunContext,
    request: DecisionRequest,
    answer: DecisionAnswer,
    *,
    decided: DecisionRequestId | None = None,
) -> AgentDecisionResult | RejectedModelAnswer:
    """In a transaction of its own, without a call of a model. `decided`: the stored request that it settles."""
    decision_type = DECISION_HANDLERS[request.kind](context)
    answer = answer.redacted(context.services.redact)
    vectors: VectorByContentHash = {}
    if decision_type.embeds_texts:
        current = await CurrentOfferedMemories.load(context.reads, request)
        result = answer.checked_against_request_and_memories(current)
        if not isinstance(result, RejectedModelAnswer):
            vectors = (await context.services.embed(decision_type.texts_to_embed(result.answer, current))).vectors
    async with context.unit_of_work(request.kind, PreparedStepInputs(vectors=vectors)) as work:
        await work.load_memory_states([memory.id for memory in request.memories])
        current = await CurrentOfferedMemories.load(work.transaction, request)
        if request.cluster_id is not None:
            await work.load_clusters([request.cluster_id])
            if cluster := work.clusters.get(request.cluster_id):
                current = replace(
                    current, is_root=cluster.is_root, active_count=work.active_status_member_count(cluster.id)
                )
        result = answer.checked_against_request_and_memories(current)
        if isinstance(result, RejectedModelAnswer):
            return result
        counts = await decision_type.apply_answer(work, result.answer, current)
        if isinstance(counts, RejectedModelAnswer):
            return counts
        if decided is not None:
            work.decided_request_ids.append(decided)
    return AgentDecisionResult(offer=request.id, counts=counts, left_out=result.left_out)


# --- the calling agent ------------------------------------------------------------------------------------------


async def offer_decisions_to_agent(
    context: PatrolRunContext, max_bytes: int = MAX_OFFERED_DECISION_REQUESTS_BYTES
) -> tuple[list[DecisionRequest], int]:
    """Pending decisions, as many as fit into `max_bytes` of an answer, at least one; stored so that
    a decision can be checked against them; and how many more there may be. A request that was offered before and is
    unchanged is offered again. A dry run only counts."""
    while True:
        at_erasure_count = await context.reads.last_erasure_number()
        stored, requests, waiting, without_choice = await _requests_to_offer(context, max_bytes)
        if context.run_id:  # in a run of its own nothing would be journalled
            for request in without_choice:
                await apply_decision_answer(context, request, ConsolidationAnswer())
        new_records = [
            StoredDecisionRequest(id=request.id, topic=request.topic_key, body=request.as_json())
            for request in requests
            if request not in stored
        ]
        # What was forgotten meanwhile must not be stored again (ruling 11).
        if not new_records or await context.services.ledger.store_decision_requests_unless_erased(
            context.scope, new_records, at=context.services.now(), at_erasure_count=at_erasure_count
        ):
            return requests, waiting


async def _requests_to_offer(
    context: PatrolRunContext, max_bytes: int
) -> tuple[list[DecisionRequest], list[DecisionRequest], int, list[DecisionRequest]]:
    """The stored requests; those to offer, which may be among them; how many more there may be; and those on the way
    that need no decision. The kinds take turns, so that each has its share (ruling 20)."""
    stored = [DecisionRequest.from_json(record.body) for record in await context.reads.open_decision_requests()]
    kinds = {kind: DECISION_HANDLERS[kind](context, DECISION_REQUEST_LIMITS_FOR_AGENT) for kind in DECISION_OFFER_ORDER}
    keys = {kind: deque(await decision_type.keys_that_may_need_decision()) for kind, decision_type in kinds.items()}
    today = await _topics_offered_today(context)
    open_topics = {request.topic_key for request in stored}
    for kind, most in MAX_TOPICS_OFFERED_A_DAY.items():
        keys[kind] = deque(_keys_to_offer_today(kind, keys[kind], open_topics, today, most))
    offers: dict[DecisionKind, list[DecisionRequest]] = {kind: [] for kind in kinds}
    if context.dry_run:
        return stored, [], sum(map(len, keys.values())), []
    parts: dict[DecisionKind, deque[DecisionRequest]] = {kind: deque() for kind in kinds}
    without_choice: list[DecisionRequest] = []
    shown: set[MemoryId] = set()
    room = max_bytes
    for max_requests in range(1, MAX_DECISION_REQUESTS_PER_KIND + 1):
        for kind, decision_type in kinds.items():
            while room > 0 and len(offers[kind]) < max_requests and (parts[kind] or keys[kind]):
                if not parts[kind]:
                    for new in await decision_type.build_requests_for_key(keys[kind].popleft()):
                        (parts[kind] if new.has_choice else without_choice).append(new)
                    continue
                new = parts[kind].popleft()
                request = next((old for old in stored if replace(old, id=new.id) == new), new)
                size = len(json.dumps(decision_request_as_json_for_agent(request, shown), ensure_ascii=False).encode())
                if size > room and any(offers.values()):
                    parts[kind].appendleft(new)
                    break
                offers[kind].append(request)
                shown |= request.ids_shown_with_text
                room -= size
    for _ in range(min(MAX_CLUSTERS_EXAMINED_FOR_DECISIONS, len(keys["consolidate"]))):
        for new in await kinds["consolidate"].build_requests_for_key(keys["consolidate"].popleft()):
            (parts["consolidate"] if new.has_choice else without_choice).append(new)
    waiting = sum(map(len, keys.values())) + sum(map(len, parts.values()))
    offered = [request for requests in offers.values() for request in requests]
    return stored, offered, waiting, without_choice


def _keys_to_offer_today(
    kind: DecisionKind, keys: Iterable[str], open_topics: Set[str], today: Set[str], most: int
) -> list[str]:
    """Those that are offered already, then others, until with what was decided `today` there are `most` topics. What
    no key stands for any more, though its offer is open, counts for nothing."""
    topics = {key: topic_key_of(kind, key) for key in keys}
    offered = [key for key, topic in topics.items() if topic in open_topics or topic in today]
    decided = [topic for topic in today - set(topics.values()) if topic.startswith(topic_key_of(kind, ""))]
    others = [key for key in topics if key not in offered]
    return [*offered, *others[: max(0, most - len(offered) - len(decided))]]


async def _topics_offered_today(context: PatrolRunContext) -> set[str]:
    services = context.services
    lately = await context.reads.topics_offered_since(services.now() - timedelta(days=1))
    return {topic for topic, at in lately.items() if services.local_day(at) == services.today()}


async def apply_agent_decisions(
    context: PatrolRunContext, decisions: Sequence[AgentDecision | RejectedAgentDecision]
) -> list[AgentDecisionResult]:
    """Each by itself: one that cannot be used changes nothing and does not keep the others from counting."""
    stored = {
        record.id: record
        for record in await context.reads.decision_requests_with_ids(
            [DecisionRequestId(decision.offer) for decision in decisions]
        )
    }
    results: list[AgentDecisionResult] = []
    for decision in decisions:
        if isinstance(decision, RejectedAgentDecision):
            results.append(AgentDecisionResult(offer=decision.offer, refused=decision.reason))
            continue
        results.append(await _apply_agent_decision(context, decision, stored.get(DecisionRequestId(decision.offer))))
        if not results[-1].refused:
            stored.pop(DecisionRequestId(decision.offer), None)
    return results


async def _apply_agent_decision(
    context: PatrolRunContext, decision: AgentDecision, stored: StoredDecisionRequest | None
) -> AgentDecisionResult:
    if stored is None or stored.decided_by is not None:
        why = "was decided before" if stored else "is not known: it was never made, or too long ago"
        refused = f"This offer {why}. Call run_patrol with decisions: [] for pending decisions."
        return AgentDecisionResult(offer=decision.offer, refused=refused)
    request = DecisionRequest.from_json(stored.body)
    answer = DECISION_HANDLERS[request.kind].answer_type.from_agent_decision(decision.with_full_ids(request))
    result = (
        answer
        if isinstance(answer, RejectedModelAnswer)
        else await apply_decision_answer(context, request, answer, decided=stored.id)
    )
    if isinstance(result, RejectedModelAnswer):
        return AgentDecisionResult(offer=decision.offer, refused=_with_short_ids(result.reason, request))
    return replace(result, left_out=tuple(_with_short_ids(sentence, request) for sentence in result.left_out))


def _with_short_ids(sentence: str, request: DecisionRequest) -> str:
    for memory in request.memories:
        sentence = sentence.replace(memory.id, memory.short_id)
    return sentence.replace(request.id, short_id_of_non_memory(request.id))
