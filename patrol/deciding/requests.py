"""Decision requests: memories, and what is to be decided about them, in a bounded size (ruling 10); as prompts for a
language model, and as JSON for the calling agent.

The same input gives the same requests, except for their ids. Memories are data: in a prompt they stand between tags
that no memory can write (`escape_tags_on_one_line`), as JSON.
"""

from __future__ import annotations

import json
import tomllib
import uuid
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from madeleine.memory.language_model import Prompt
from madeleine.memory.model import (
    ClusterId,
    DatedAction,
    Memory,
    MemoryId,
    Status,
    TruthStatus,
    date_of_timeline_entry,
    short_id_of,
    short_memory_id,
)
from madeleine.memory.patrol_records import DecisionRequestId
from madeleine.memory.rules.prompting import escape_tags_on_one_line
from madeleine.memory.rules.ranking.budget import within_budget

DecisionKind = Literal["consolidate", "split", "supersede", "diary", "compress"]

MAX_OFFERED_MEMORIES = 60
MAX_DECISION_REQUEST_CHARS = 24_000
"""Some 6,000 tokens of English."""
MAX_OFFERED_TEXT_CHARS = 1_000
MAX_SUMMARISED_TEXT_CHARS = 4_000
"""A summary stands for the whole memory, so it is made of more of it."""
MAX_FEELING_CHARS, MAX_ACTORS, MAX_ACTOR_CHARS, MAX_DATE_CHARS = 300, 10, 60, 40
SORT_KEY_BY_STORING_TIME = attrgetter("created_at", "id")
SORT_KEY_BY_EVENT_TIME = attrgetter("happened_at", "created_at", "id")
"""Keys for sorting memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedMemory:
    """A memory as far as a decision needs it. `text` is its action, shortened; `when` its first date, else the day it
    happened."""

    id: MemoryId
    number: int = 0
    text: str
    when: str
    feeling: str = ""
    importance: float
    status: Status
    fresh: bool
    pinned: bool
    truth: TruthStatus = "current"
    actors: tuple[str, ...] = ()

    @property
    def short_id(self) -> str:
        return short_memory_id(self.number) if self.number else self.id

    @property
    def size(self) -> int:
        """In characters."""
        return len(self.text) + len(self.when) + len(self.feeling) + sum(len(actor) for actor in self.actors)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """At most `MAX_OFFERED_MEMORIES` memories and `MAX_DECISION_REQUEST_CHARS`. `cluster_id` and `cluster`, its name,
    for consolidate and split; `session_id` for compress. Of supersede the older of two memories comes first.
    For diary: `date` (ISO), `earlier`, the entry already written that day, `think`, the points of the patrol before,
    and `until`, when the last memory of the request was stored:
    what is stored later is for the next entry."""

    id: DecisionRequestId = field(default_factory=lambda: DecisionRequestId(str(uuid.uuid4())))
    kind: DecisionKind
    memories: tuple[OfferedMemory, ...]
    cluster_id: ClusterId | None = None
    cluster: str = ""
    session_id: str = ""
    date: str = ""
    earlier: str = ""
    think: tuple[str, ...] = ()
    until: datetime | None = None

    @property
    def topic(self) -> str:
        """What it is about: requests of one topic are parts of one decision."""
        about = self.memories[-1].id if self.kind == "supersede" else self.cluster_id or self.session_id or self.date
        return f"{self.kind}:{about}"

    @property
    def has_choice(self) -> bool:
        """False where only one answer is possible: a single memory that is not dying has none to be merged with."""
        return self.kind != "consolidate" or len(self.memories) > 1 or self.memories[0].status == "dying"

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = _request_adapter().dump_python(self, mode="json")
        return fields

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> DecisionRequest:
        return _request_adapter().validate_python(raw)


@cache
def _request_adapter() -> TypeAdapter[DecisionRequest]:
    return TypeAdapter(DecisionRequest)


def offered_text(memory: Memory, kind: DecisionKind) -> str:
    """As a request of that kind shows it; to be summarised with all that it has absorbed, for the summary hides it."""
    if kind != "compress":
        return shortened(memory.scene.action, MAX_OFFERED_TEXT_CHARS)
    absorbed = [
        f"{date_of_timeline_entry(item)}: {item.action}" for item in memory.scene.when if isinstance(item, DatedAction)
    ]
    return shortened("\n".join((memory.scene.action, *absorbed)), MAX_SUMMARISED_TEXT_CHARS)


def offered_memory(memory: Memory, kind: DecisionKind) -> OfferedMemory:
    when = date_of_timeline_entry(memory.scene.when[0]) if memory.scene.when else memory.happened_at.date().isoformat()
    return OfferedMemory(
        id=memory.id,
        number=memory.number,
        text=offered_text(memory, kind),
        when=shortened(when, MAX_DATE_CHARS),
        feeling=shortened(memory.feeling, MAX_FEELING_CHARS),
        importance=memory.importance,
        status=memory.status,
        fresh=memory.fresh and kind == "consolidate",  # elsewhere it is not shown, and would make the request a new one
        pinned=memory.pinned,
        truth=memory.truth,
        actors=tuple(shortened(actor, MAX_ACTOR_CHARS) for actor in memory.scene.actors[:MAX_ACTORS]),
    )


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, the last of them `…` where something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def offered_memories_within_limits(
    memories: Sequence[Memory], kind: DecisionKind, *, used_characters: int = 0
) -> tuple[OfferedMemory, ...]:
    """In order, each that still fits into a request."""
    offered = [offered_memory(memory, kind) for memory in memories]
    sizes = [memory.size for memory in offered]
    return tuple(
        offered[i]
        for i in within_budget(sizes, limit=MAX_OFFERED_MEMORIES, budget=MAX_DECISION_REQUEST_CHARS - used_characters)
    )


def offered_memories_in_parts(memories: Sequence[Memory], kind: DecisionKind) -> list[list[OfferedMemory]]:
    """All of them, in order, as many parts as do not fit into one request."""
    parts: list[list[OfferedMemory]] = []
    characters = 0
    for memory in (offered_memory(memory, kind) for memory in memories):
        characters += memory.size
        if not parts or len(parts[-1]) == MAX_OFFERED_MEMORIES or characters > MAX_DECISION_REQUEST_CHARS:
            parts.append([])
            characters = memory.size
        parts[-1].append(memory)
    return parts


# --- texts for a model, and for the agent -------------------------------------------------------------------------

_PROMPTS = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))
SYSTEM_PROMPTS: Mapping[str, str] = {kind: f"{text}\n\n{_PROMPTS['data']}" for kind, text in _PROMPTS["system"].items()}
"""For a language model, by the purpose of the prompt."""
SESSION_SUMMARY_PROMPT: str = _PROMPTS["summarize"]
"""spec L3, word for word."""
AGENT_GUIDANCE: Mapping[DecisionKind, str] = _PROMPTS["guidance"]
"""For the agent that reads requests in a tool's answer, once a kind."""
GUIDANCE_INTRODUCTION: str = _PROMPTS["guidance_first"]
MAX_DECISION_ANSWER_TOKENS: Mapping[DecisionKind, int] = _PROMPTS["max_answer_tokens"]


def decision_prompt(request: DecisionRequest) -> Prompt:
    """With numbers for ids (`Answer.from_model_answer`)."""
    return Prompt(
        purpose=request.kind,
        system=SYSTEM_PROMPTS[request.kind],
        text=_prompt_text(request),
        size="large",
        max_tokens=MAX_DECISION_ANSWER_TOKENS[request.kind],
    )


def request_for_agent(request: DecisionRequest, already_shown: Container[MemoryId] = ()) -> dict[str, Any]:
    """As a tool's answer shows it: with ids, without empty fields; of memories already `already_shown` the id alone."""
    fields = {
        "cluster": escape_tags_on_one_line(request.cluster),
        "session_id": request.session_id,
        "when": request.date,
        "earlier": _quoted_lines(request.earlier),
        "think": [escape_tags_on_one_line(point) for point in request.think],
    }
    memories = [
        {"id": memory.short_id} | ({} if memory.id in already_shown else _memory_fields(memory, request.kind))
        for memory in request.memories
    ]
    filled_fields = {name: value for name, value in fields.items() if value}
    return {"offer": short_id_of(request.id), "kind": request.kind, **filled_fields, "memories": memories}


def _prompt_text(request: DecisionRequest) -> str:
    match request.kind:
        case "compress":
            lines = (f"- {escape_tags_on_one_line(f'{memory.when}: {memory.text}')}" for memory in request.memories)
            return SESSION_SUMMARY_PROMPT.format(session_content=memory_tag(*lines))
        case "diary":
            entries: list[dict[str, Any]] = [{"earlier": _quoted_lines(request.earlier)}] if request.earlier else []
            if request.think:
                entries.append({"think": [escape_tags_on_one_line(point) for point in request.think]})
            entries += [_memory_fields(memory, "diary") for memory in request.memories]
            return f"The day: {request.date}\n{memory_tag(*map(quoted_json, entries))}"
        case "supersede":
            return memory_tag(*(quoted_json(_memory_fields(memory, "supersede")) for memory in request.memories))
        case _:
            numbered = [
                {"n": number} | _memory_fields(memory, request.kind)
                for number, memory in enumerate(request.memories, start=1)
            ]
            return memory_tag(*map(quoted_json, [{"cluster": escape_tags_on_one_line(request.cluster)}, *numbered]))


def memory_tag(*lines: str) -> str:
    return "\n".join(["<memory>", *lines, "</memory>"])


def quoted_json(value: dict[str, Any]) -> str:
    """Quoted as a whole too: `<` at the end of one text and `memory>` in the next could be read as a tag."""
    return escape_tags_on_one_line(json.dumps(value, ensure_ascii=False))


def _memory_fields(memory: OfferedMemory, kind: DecisionKind) -> dict[str, Any]:
    """Importance, status and marks only where they bear on the decision."""
    fields: dict[str, Any] = {
        "when": escape_tags_on_one_line(memory.when),
        "text": escape_tags_on_one_line(memory.text),
    }
    if memory.feeling and kind != "compress":
        fields["feeling"] = escape_tags_on_one_line(memory.feeling)
    if memory.actors and kind != "compress":
        fields["actors"] = [escape_tags_on_one_line(actor) for actor in memory.actors]
    if kind in {"consolidate", "diary"}:
        fields["importance"] = round(memory.importance, 2)
    if kind == "consolidate":
        fields |= {"status": memory.status} if memory.status != "active" else {}
        fields |= {"truth": memory.truth} if memory.truth != "current" else {}
        fields |= {name: True for name in ("fresh", "pinned") if getattr(memory, name)}
    return fields


def _quoted_lines(text: str) -> str:
    return escape_tags_on_one_line(" / ".join(line for line in text.splitlines() if line.strip()))
