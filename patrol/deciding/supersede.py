"""What a newer memory may have superseded was only proposed when it was stored: here it is decided (ruling 14)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from madeleine.memory.errors import MadeleineError
from madeleine.memory.language_model import RejectedModelAnswer
from madeleine.memory.model import Memory, MemoryId
from madeleine.memory.rules.dynamics.future_dates import future_start_of_replacement, start_of_supersession
from madeleine.memory.rules.dynamics.truth import Supersession, memories_after_supersession
from madeleine.memory.rules.storing.unreplaced_clauses import unreplaced_clauses_notice
from madeleine.patrol.deciding.answers import (
    CheckedDecisionAnswer,
    CurrentOfferedMemories,
    DecisionAnswer,
    DecisionAnswerSchema,
    DecisionHandler,
)
from madeleine.patrol.deciding.requests import DecisionRequest, offered_memory_from_memory
from madeleine.patrol.unit_of_work import UnitOfWork


class SupersessionAnswerSchema(DecisionAnswerSchema):
    superseded: bool


@dataclass(frozen=True, slots=True)
class SupersessionAnswer(DecisionAnswer):
    """Whether the first memory of the request, the older one, was superseded by the second. If not, both stay true, and
    are linked no longer."""

    kind = "supersede"
    schema = SupersessionAnswerSchema

    superseded: bool = False

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        return iter(())

    def checked_against_current_memories(
        self, current: CurrentOfferedMemories
    ) -> CheckedDecisionAnswer | RejectedModelAnswer:
        if reason := current.reason_why_offer_is_outdated():
            return RejectedModelAnswer(reason)
        older, newer = older_and_newer_memory(current)
        if newer.may_supersede != older.id:
            return RejectedModelAnswer("This pair was decided before: nothing was changed.")
        if not self.superseded:
            return CheckedDecisionAnswer(self)
        if reason := supersession_obstacle(older, newer, newer.created_at):
            return RejectedModelAnswer(reason)
        besides = unreplaced_clauses_notice(older.short_id, older.scene.action, newer.scene.action)
        return CheckedDecisionAnswer(self, left_out=(besides,) if besides else ())


def older_and_newer_memory(current: CurrentOfferedMemories) -> tuple[Memory, Memory]:
    """The older and the newer memory of the request; they still exist."""
    older, newer = (current.memories[memory.id] for memory in current.request.memories)
    return older, newer


def supersession_obstacle(older: Memory, newer: Memory, at: datetime) -> str:
    """Why the newer one cannot take the other's place, or ""."""
    try:
        memories_after_supersession(older, newer, start_of_supersession(older, newer), at)
    except MadeleineError as error:
        return str(error)
    return ""


class SupersessionDecisionHandler(DecisionHandler[SupersessionAnswer]):
    answer_type = SupersessionAnswer

    async def keys_that_may_need_decision(self) -> list[str]:
        """Ids of the newer memories, the oldest first, so that a chain is decided in the order in which it grew."""
        return [*await self.context.reads.all_memory_ids_that_may_supersede()]

    async def build_requests_for_key(self, key: str) -> list[DecisionRequest]:
        reads = self.context.reads
        newer = await reads.memories_with_ids([MemoryId(key)])
        older = await reads.memories_with_ids([one.may_supersede for one in newer if one.may_supersede])
        now = self.context.services.now()
        if (
            not older
            or supersession_obstacle(older[0], newer[0], now)
            or future_start_of_replacement(older[0], newer[0], now)
        ):
            return []
        pair = tuple(offered_memory_from_memory(memory, "supersede") for memory in (*older, *newer))
        return [DecisionRequest(kind="supersede", memories=pair)]

    async def apply_answer(
        self, work: UnitOfWork, answer: SupersessionAnswer, current: CurrentOfferedMemories
    ) -> dict[str, int]:
        older, newer = older_and_newer_memory(current)
        if answer.superseded:
            at = self.context.services.now()
            since = start_of_supersession(older, newer)
            act = Supersession(old=older.id, new=newer.id, since=since, at=at, tool="run_patrol")
            work.superseded.append(act)
        else:
            for state in await work.load_memory_states([newer.id]):
                # It may say the same as the older one, which the next patrol asks.
                work.put_memory_state(replace(state, may_supersede=None, fresh=state.fresh or state.status == "active"))
        return {"superseded": int(answer.superseded), "both_true": int(not answer.superseded)}
