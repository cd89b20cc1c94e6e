"""Answers to decision requests, held against the request, then against the memories as they are now (ruling 10).

An answer that breaks a rule of its request is rejected as a whole. What has changed since the request is nobody's
fault: the parts that it concerns are left out, and the rest counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from madeleine.memory.language_model import RejectedModelAnswer
from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId
from madeleine.memory.rules.storing.secrets import RedactText
from madeleine.patrol.context import PatrolRunContext
from madeleine.patrol.deciding.requests import (
    DECISION_REQUEST_LIMITS_FOR_MODEL,
    MAX_MEMORIES_PER_DECISION_REQUEST,
    DecisionKind,
    DecisionRequest,
    DecisionRequestLimits,
    is_text_unchanged_since_offer,
)
from madeleine.patrol.ports import PatrolMemoryReader
from madeleine.patrol.unit_of_work import UnitOfWork

MAX_DECISION_TEXT_CHARS = 2_000
MAX_NEXT_SESSION_POINT_CHARS = 300
MIN_AND_MAX_NEXT_SESSION_POINTS = (3, 7)
MAX_COMPLAINTS_PER_ANSWER = 5

MemoryIdsInDecision = Annotated[
    list[Annotated[MemoryId, Field(min_length=1, max_length=64)]], Field(max_length=MAX_MEMORIES_PER_DECISION_REQUEST)
]


# One flat shape for every kind of request. No docstring and no word too many: it goes into the tool's schema, which
# every client puts into every prompt. What the fields mean is said with each request
# (`rendering.AGENT_GUIDANCE_BY_DECISION_NAME`).
class AgentDecision(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    offer: Annotated[str, Field(min_length=1, max_length=64)]
    merges: Annotated[
        list[MemoryIdsInDecision],
        Field(max_length=MAX_MEMORIES_PER_DECISION_REQUEST // 2, description="Survivor first."),
    ] = []
    make_dead: MemoryIdsInDecision = []
    keep: MemoryIdsInDecision = []
    parts: Annotated[list[MemoryIdsInDecision], Field(max_length=MAX_MEMORIES_PER_DECISION_REQUEST // 2)] = []
    diary: Annotated[str, Field(max_length=MAX_DECISION_TEXT_CHARS)] = ""
    think_md: Annotated[
        list[Annotated[str, Field(max_length=MAX_NEXT_SESSION_POINT_CHARS)]],
        Field(max_length=MIN_AND_MAX_NEXT_SESSION_POINTS[1]),
    ] = []
    summary: Annotated[str, Field(max_length=MAX_DECISION_TEXT_CHARS)] = ""
    superseded: bool = False
    text: Annotated[str, Field(max_length=MAX_DECISION_TEXT_CHARS)] = ""

    def with_full_ids(self, request: DecisionRequest) -> AgentDecision:
        full = {memory.short_id: memory.id for memory in request.memories}

        def replaced(ids: Iterable[str]) -> list[MemoryId]:
            return [full.get(id_, MemoryId(id_)) for id_ in ids]

        parts = [[*part[:1], *replaced(part[1:])] for part in self.parts]  # a part begins with its name
        merges = [replaced(merge) for merge in self.merges]
        lists = {name: replaced(getattr(self, name)) for name in ("make_dead", "keep")}
        return self.model_copy(update={"merges": merges, "parts": parts, **lists})


class RejectedAgentDecision(BaseModel):
    """A decision that does not fit the schema, kept so that it rejects only itself. `offer`: "" if it names none."""

    model_config = ConfigDict(frozen=True)

    offer: str
    reason: str


def _agent_decision_or_rejection(
    raw: Any, validate: ValidatorFunctionWrapHandler
) -> AgentDecision | RejectedAgentDecision:
    try:
        decision: AgentDecision = validate(raw)
    except ValidationError as error:
        offer = raw.get("offer") if isinstance(raw, dict) else None
        wrong = (f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors()[:3])
        return RejectedAgentDecision(offer=offer[:64] if isinstance(offer, str) else "", reason=f"{'; '.join(wrong)}.")
    return decision


ReceivedDecision = Annotated[AgentDecision, WrapValidator(_agent_decision_or_rejection)]
"""A `AgentDecision`, or an `RejectedAgentDecision` where it is not one."""


class DecisionAnswerSchema(BaseModel):
    # For a language model, which sees numbers in place of ids. Bounds are not in the schemas, where structured outputs
    # know none, but in the checks. Docstrings would go into the schemas.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class CurrentOfferedMemories:
    """`memories`: those of the request that still exist. Of the request's cluster, for split: whether it is a root, and
    how many active memories it has, 0 if it is gone."""

    request: DecisionRequest
    memories: Mapping[MemoryId, Memory]
    is_root: bool = False
    active_count: int = 0

    @classmethod
    async def load(cls, reads: PatrolMemoryReader, request: DecisionRequest) -> Self:
        memories = await reads.memories_with_ids([memory.id for memory in request.memories])
        return cls(request, {memory.id: memory for memory in memories})

    def describe_change_since_offer(self, id_: MemoryId) -> str:
        """What happened to a memory of a cluster since it was offered, that takes it out of what was decided; "" if it
        lives, is where it was, and says what it said."""
        memory = self.memories.get(id_)
        if memory is None:
            return "was forgotten"
        if memory.status not in LIVING_STATUSES:
            return "is dead by now"
        if self.request.cluster_id is not None and memory.cluster_id != self.request.cluster_id:
            return "is in another cluster by now"
        offered = (offered for offered in self.request.memories if offered.id == id_)
        unchanged = all(is_text_unchanged_since_offer(memory, one, self.request.kind) for one in offered)
        return "" if unchanged else "says something else by now"

    def reason_why_offer_is_outdated(self) -> str:
        """Why a text made from the memories of the request must not be written, or ""."""
        again = "since this was offered: nothing was written. Take a new offer."
        for offered in self.request.memories:
            memory = self.memories.get(offered.id)
            if memory is None:
                return f"Memory {offered.id!r} was forgotten {again}"
            if not is_text_unchanged_since_offer(memory, offered, self.request.kind):
                return f"Memory {offered.id!r} was changed {again}"
            # Of a chain the later pair may be decided first; what it has superseded still took its own place.
            is_link = self.request.kind == "supersede" and offered is not self.request.memories[0]
            if memory.truth != "current" and not (is_link and memory.truth == "superseded"):
                return f"Memory {offered.id!r} was {memory.truth} {again}"
            if self.request.kind == "compress" and memory.pinned and not offered.pinned:
                return f"Memory {offered.id!r} was pinned {again}"
            if self.request.kind == "compress" and (memory.lesson or memory.may_supersede or memory.valid_from):
                return f"Memory {offered.id!r} was given a lesson, a date to hold from or a memory to supersede {again}"
            if self.request.kind == "compress" and memory.compressed:
                return f"A summary stands for memory {offered.id!r} already: nothing was written."
        return ""

    @staticmethod
    def unblocked_memory_ids(
        obstacles: Mapping[MemoryId, str], consequence: str, left_out: list[str]
    ) -> tuple[MemoryId, ...]:
        """The memories without an obstacle. Adds a sentence to `left_out` for each of the others."""
        left_out += [f"{id_} {obstacle}: {consequence}." for id_, obstacle in obstacles.items() if obstacle]
        return tuple(id_ for id_, obstacle in obstacles.items() if not obstacle)


@dataclass(frozen=True, slots=True)
class CheckedDecisionAnswer:
    """What may be applied now. `left_out`: why parts of the answer may not, a sentence each: their memories have
    changed since the request; of supersede what the older one said besides."""

    answer: DecisionAnswer
    left_out: tuple[str, ...] = ()


class DecisionAnswer(ABC):
    """An answer in memory ids, frozen. `schema`: as a language model gives it."""

    kind: ClassVar[DecisionKind]
    schema: ClassVar[type[DecisionAnswerSchema]]

    @classmethod
    def from_model_answer(cls, answer: DecisionAnswerSchema, request: DecisionRequest) -> Self | RejectedModelAnswer:
        """Of a language model. Numbers count from 1 in the order of the request."""
        ids = {number: memory.id for number, memory in enumerate(request.memories, start=1)}
        unknown: set[int] = set()

        def replaced(value: Any) -> Any:
            match value:
                case bool():
                    return value
                case int():
                    unknown.update({value} - ids.keys())
                    return ids.get(value, "")
                case list():
                    return [replaced(item) for item in value]
                case dict():
                    return {name: replaced(item) for name, item in value.items()}
                case _:
                    return value

        fields = replaced(answer.model_dump())
        if unknown:
            listed = ", ".join(map(str, sorted(unknown)[:5]))
            return RejectedModelAnswer(f"There is no memory {listed}: the numbers go from 1 to {len(ids)}.")
        return cls._from_validated_fields(fields)

    @classmethod
    def from_agent_decision(cls, decision: AgentDecision) -> Self | RejectedModelAnswer:
        """Of the calling agent. Rejects a decision with fields that belong to another kind of request."""
        own = tuple(cls.schema.model_fields)
        named = [name for name in AgentDecision.model_fields if name != "offer" and getattr(decision, name)]
        if foreign := [name for name in named if name not in own]:
            return RejectedModelAnswer(
                f"Offer {decision.offer} is to {cls.kind} and takes {' and '.join(own)}: leave out "
                f"{', '.join(foreign)}."
            )
        return cls._from_relevant_decision_fields(decision)

    @classmethod
    def _from_relevant_decision_fields(cls, decision: AgentDecision) -> Self | RejectedModelAnswer:
        return cls._from_validated_fields({name: getattr(decision, name) for name in cls.schema.model_fields})

    @classmethod
    def _from_validated_fields(cls, fields: Mapping[str, Any]) -> Self:
        answer: Self = _type_adapter_of_answer(cls).validate_python(fields)
        return answer

    def normalized(self) -> Self:
        """With tidy texts."""
        return self

    def redacted(self, redact: RedactText) -> Self:
        """Without secrets."""
        return self

    def normalized_answer_or_rejection(self, request: DecisionRequest) -> Self | RejectedModelAnswer:
        """The answer, its texts tidied, or what is wrong with it, up to five complaints at once."""
        if self.kind != request.kind:
            return RejectedModelAnswer(f"This offer is to {request.kind}: answer that.")
        answer = self.normalized()
        complaints = list(dict.fromkeys(answer.complaints(request)))[:MAX_COMPLAINTS_PER_ANSWER]
        return RejectedModelAnswer(" ".join(complaints)) if complaints else answer

    def checked_against_request_and_memories(
        self, current: CurrentOfferedMemories
    ) -> CheckedDecisionAnswer | RejectedModelAnswer:
        """Held against the request, then against the memories as they are now."""
        result = self.normalized_answer_or_rejection(current.request)
        return result if isinstance(result, RejectedModelAnswer) else result.checked_against_current_memories(current)

    @abstractmethod
    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        """The rules of its request that it breaks, a sentence each."""

    def checked_against_current_memories(
        self, current: CurrentOfferedMemories
    ) -> CheckedDecisionAnswer | RejectedModelAnswer:
        """The answer fits its request. A text cannot be left out in part: where a memory that it was made from was
        forgotten or changed, it is refused, for it might say what is to be gone."""
        return (
            RejectedModelAnswer(reason)
            if (reason := current.reason_why_offer_is_outdated())
            else CheckedDecisionAnswer(self)
        )

    @staticmethod
    def id_complaints(named: Sequence[MemoryId], request: DecisionRequest) -> Iterator[str]:
        offered = {memory.id for memory in request.memories}
        for id_, times in Counter(named).items():
            if id_ not in offered:
                yield f"Memory {id_!r} was not offered: use only ids that stand in this offer."
            elif times > 1:
                yield f"Memory {id_!r} is named {times} times: name it once in the whole answer."

    @staticmethod
    def text_complaints(name: str, text: str, longest: int = MAX_DECISION_TEXT_CHARS) -> Iterator[str]:
        if not text.strip():
            yield f"{name} is empty: write it."
        if len(text) > longest:
            yield f"{name} has {len(text):,} characters: write at most {longest:,}."
        if "\x00" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
            yield f"{name} holds a sign that cannot be stored: leave it out."


@cache
def _type_adapter_of_answer(answer_type: type[DecisionAnswer]) -> TypeAdapter[Any]:
    return TypeAdapter(answer_type)


# --- types of decisions -------------------------------------------------------------------------------------------

AnswerT = TypeVar("AnswerT", bound=DecisionAnswer)


class DecisionHandler(ABC, Generic[AnswerT]):
    """Finds what is to be decided in a patrol, offers it, and applies an answer."""

    answer_type: type[AnswerT]
    embeds_texts: ClassVar[bool] = False
    """Whether it has `texts_to_embed`."""

    def __init__(
        self,
        context: PatrolRunContext,
        limits: Mapping[DecisionKind, DecisionRequestLimits] = DECISION_REQUEST_LIMITS_FOR_MODEL,
    ) -> None:
        self.context = context
        self.limits = limits[self.answer_type.kind]
        self.asks_agent = limits is not DECISION_REQUEST_LIMITS_FOR_MODEL

    @abstractmethod
    async def keys_that_may_need_decision(self) -> list[str]:
        """Keys (of clusters, sessions, days) of what may have to be decided, the largest first. Reads counts only."""

    @abstractmethod
    async def build_requests_for_key(self, key: str) -> list[DecisionRequest]: ...

    def texts_to_embed(self, answer: AnswerT, current: CurrentOfferedMemories) -> list[str]:
        """Texts that `apply` stores, to be embedded before it; the answer was checked against `current`."""
        return []

    @abstractmethod
    async def apply_answer(
        self, work: UnitOfWork, answer: AnswerT, current: CurrentOfferedMemories
    ) -> Mapping[str, int] | RejectedModelAnswer:
        """Change the unit of work, whose `prepared.vectors` holds those of `texts_to_embed`; the answer was checked
        against `current`. Returns counts for the report."""
