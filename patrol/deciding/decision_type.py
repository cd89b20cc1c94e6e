"""The protocol of a decision type: consolidate, split, diary, compress."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, TypeVar

from madeleine.memory.language_model import Rejected
from madeleine.patrol.context import PatrolContext
from madeleine.patrol.deciding.answers import Consolidation, Diary, Split, Summary
from madeleine.patrol.deciding.checks import CurrentState
from madeleine.patrol.deciding.requests import DecisionKind, DecisionRequest
from madeleine.patrol.ports import PatrolReads
from madeleine.patrol.unit_of_work import UnitOfWork

AnswerT = TypeVar("AnswerT", Consolidation, Split, Diary, Summary)


class DecisionType(ABC, Generic[AnswerT]):
    """Finds what is to be decided, offers it, and applies an answer."""

    kind: ClassVar[DecisionKind]
    embeds_texts: ClassVar[bool] = False
    """Whether it has `new_texts`."""

    @abstractmethod
    async def pending(self, context: PatrolContext) -> list[str]:
        """Keys (of clusters, sessions, days) of what may have to be decided, the largest first. Reads counts only."""

    @abstractmethod
    async def requests(self, context: PatrolContext, key: str) -> list[DecisionRequest]: ...

    async def current(self, work: UnitOfWork, request: DecisionRequest) -> CurrentState:
        memories = await work.memories(await work.states([memory.id for memory in request.memories]))
        return CurrentState({memory.id: memory for memory in memories})

    def new_texts(
        self, context: PatrolContext, request: DecisionRequest, answer: AnswerT, current: CurrentState
    ) -> list[str]:
        """Texts that `apply` stores, to be embedded before it; the answer was checked against `current`."""
        return []

    @abstractmethod
    async def apply(
        self, context: PatrolContext, work: UnitOfWork, request: DecisionRequest, answer: AnswerT, current: CurrentState
    ) -> Mapping[str, int] | Rejected:
        """Change the unit of work, whose `prepared.vectors` holds those of `new_texts`; the answer was checked against
        `current`. Returns counts for the report."""


async def read_current(reads: PatrolReads, request: DecisionRequest) -> CurrentState:
    memories = await reads.memories([memory.id for memory in request.memories])
    return CurrentState({memory.id: memory for memory in memories})
