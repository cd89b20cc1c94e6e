"""Offers and a language model, for the tests of what a mind decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from madeleine.memory.language_model import AnswerModelT, ModelCallCost, Prompt, RejectedModelAnswer
from madeleine.memory.model import Cluster, ClusterId, Memory
from madeleine.memory.patrol_records import DecisionRequestId
from madeleine.patrol.deciding.answers import CheckedDecisionAnswer, CurrentOfferedMemories, DecisionAnswer
from madeleine.patrol.deciding.requests import DecisionKind, DecisionRequest, offered_memory_from_memory
from tests.doubles import ADA

HOME = ClusterId("home")
DINNERS = Cluster(id=HOME, being_id=ADA.being_id, name="Dinners", parent_id=ClusterId("private"))
ROOT = Cluster(id=HOME, being_id=ADA.being_id, name="Private", parent_id=HOME, is_root=True)


def request_of(kind: DecisionKind, memories: Sequence[Memory], **fields: Any) -> DecisionRequest:
    cluster: dict[str, Any] = {"cluster_id": HOME, "cluster": "Dinners"} if kind in {"consolidate", "split"} else {}
    offered = tuple(offered_memory_from_memory(memory, kind) for memory in memories)
    return DecisionRequest(id=DecisionRequestId("offer-1"), kind=kind, memories=offered, **{**cluster, **fields})


def current_of(memories: Sequence[Memory], **fields: Any) -> CurrentOfferedMemories:
    active_count = sum(memory.status == "active" and memory.cluster_id == HOME for memory in memories)
    by_id = {memory.id: memory for memory in memories}
    return CurrentOfferedMemories(
        request_of("consolidate", memories), by_id, **{"active_count": active_count, **fields}
    )


def checked(
    answer: DecisionAnswer, request: DecisionRequest, current: CurrentOfferedMemories
) -> CheckedDecisionAnswer | RejectedModelAnswer:
    return answer.checked_against_request_and_memories(replace(current, request=request))


class ScriptedLanguage:
    """`LanguageModel` that gives the answers it is told, in order, at a hundred tokens each."""

    def __init__(self, *answers: Any) -> None:
        self.prompts: list[Prompt] = []
        self._answers = iter(answers)

    async def answer_prompt(
        self, prompt: Prompt, schema: type[AnswerModelT], on_cost: Callable[[ModelCallCost], None]
    ) -> AnswerModelT:
        self.prompts.append(prompt)
        on_cost(ModelCallCost(purpose=prompt.purpose, model="scripted-1", input_tokens=90, output_tokens=10, usd=None))
        return schema.model_validate(next(self._answers))
