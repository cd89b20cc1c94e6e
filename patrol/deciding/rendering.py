"""Decision requests as prompts for a language model, and as JSON for the calling agent.

Memories are data: in a prompt they stand between tags that no memory can write (`escape_tags_on_one_line`), as JSON.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from madeleine.memory.language_model import Prompt
from madeleine.memory.model import DEFAULT_IMPORTANCE, MemoryId, short_id_of_non_memory
from madeleine.memory.rules.prompting import escape_tags_on_one_line
from madeleine.patrol.deciding.requests import DecisionKind, DecisionRequest, MemoryInDecisionRequest

_CONTENT_OF_PROMPTS_FILE = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))
DECISION_SYSTEM_PROMPTS: Mapping[str, str] = {
    kind: f"{text}\n\n{_CONTENT_OF_PROMPTS_FILE['data']}" for kind, text in _CONTENT_OF_PROMPTS_FILE["system"].items()
}
"""For a language model, by the purpose of the prompt."""
SESSION_SUMMARY_PROMPT: str = _CONTENT_OF_PROMPTS_FILE["summarize"]
"""spec L3, word for word."""
AGENT_GUIDANCE_BY_DECISION_NAME: Mapping[str, str] = _CONTENT_OF_PROMPTS_FILE["guidance"]
"""For the agent that reads requests in a tool's answer, once each (`decision_guidance_names`)."""
SHOWN_ABOVE = "(above)"
MIN_TELLING_IMPORTANCE_DIFFERENCE = 0.2
"""From the importance that a memory has unless it is told otherwise."""
DECISION_GUIDANCE_INTRODUCTION: str = _CONTENT_OF_PROMPTS_FILE["guidance_first"]
MAX_ANSWER_TOKENS_BY_DECISION_KIND: Mapping[DecisionKind, int] = _CONTENT_OF_PROMPTS_FILE["max_answer_tokens"]


def decision_guidance_names(requests: Iterable[DecisionRequest]) -> list[str]:
    """What tells how to decide the requests: the kind of each, but of consolidate `dying` where one has memories of
    that status, and `consolidate` where one has others; and `parts` where one has texts in parts."""
    names: dict[str, None] = {}
    for request in requests:
        if request.kind == "consolidate":
            names |= {"dying" if memory.status == "dying" else "consolidate": None for memory in request.memories}
        else:
            names[request.kind] = None
        if any(memory.part_of for memory in request.memories):
            names["parts"] = None
    return list(names)


def decision_prompt(request: DecisionRequest) -> Prompt:
    """With numbers for ids (`DecisionAnswer.from_model_answer`)."""
    return Prompt(
        purpose=request.kind,
        system=DECISION_SYSTEM_PROMPTS[request.kind],
        text=_decision_prompt_text(request),
        size="large",
        max_tokens=MAX_ANSWER_TOKENS_BY_DECISION_KIND[request.kind],
    )


def decision_request_as_json_for_agent(
    request: DecisionRequest, already_shown: Container[MemoryId] = ()
) -> dict[str, Any]:
    """As a tool's answer shows it: with ids, without empty fields. `memories`: by id, each as its text alone where
    nothing else is to be told of it; as `SHOWN_ABOVE` where it is `already_shown`, unless it begins a text in parts."""
    fields: dict[str, Any] = {
        "cluster": escape_tags_on_one_line(request.cluster),
        "session_id": request.session_id,
        "when": request.date,
        "felt": request.felt,
        "note": escape_tags_on_one_line(request.note),
        "reason": escape_tags_on_one_line(request.reason),
        "earlier": _escaped_lines_joined_by_slashes(request.earlier),
        "think": [escape_tags_on_one_line(point) for point in request.think],
    }
    statuses = {memory.status for memory in request.memories}
    if request.kind == "consolidate" and statuses == {"dying"}:
        fields["status"] = "dying"
    memories: dict[str, Any] = {}
    dates: dict[str, Any] = {}
    for memory in request.memories_to_decide:
        parts = 1 + len(request.other_parts_of_text(memory.id))
        is_shown = memory.id in already_shown and parts == 1
        shown = {} if is_shown else _brief_memory_fields(memory, request.kind, fields)
        shown |= {"parts": parts} if parts > 1 else {}
        own_dates = {name: value for name, value in shown.items() if name in {"when", "stored"}}
        are_same = own_dates == dates
        told = {name: value for name, value in shown.items() if not (are_same and name in dates)}
        memories[memory.short_id] = told["text"] if told.keys() == {"text"} else told or SHOWN_ABOVE
        dates = own_dates
    fields["memories"] = memories
    filled_fields = {name: value for name, value in fields.items() if value}
    return {"offer": short_id_of_non_memory(request.id), "kind": request.kind, **filled_fields}


def _decision_prompt_text(request: DecisionRequest) -> str:
    match request.kind:
        case "compress":
            lines = (f"- {escape_tags_on_one_line(f'{memory.when}: {memory.text}')}" for memory in request.memories)
            return SESSION_SUMMARY_PROMPT.format(session_content=enclose_in_memory_tag(*lines))
        case "diary":
            entries: list[dict[str, Any]] = (
                [{"earlier": _escaped_lines_joined_by_slashes(request.earlier)}] if request.earlier else []
            )
            if request.think:
                entries.append({"think": [escape_tags_on_one_line(point) for point in request.think]})
            if request.felt:
                entries.append({"felt": request.felt})
            entries += [_memory_fields(memory, "diary") for memory in request.memories]
            return f"The day: {request.date}\n{enclose_in_memory_tag(*map(json_with_escaped_tags, entries))}"
        case "repair":
            note = {"left": request.date, "note": request.note, "reason": request.reason}
            return enclose_in_memory_tag(json_with_escaped_tags(note))
        case "supersede":
            return enclose_in_memory_tag(
                *(json_with_escaped_tags(_memory_fields(memory, "supersede")) for memory in request.memories)
            )
        case _:
            numbers = {memory.id: number for number, memory in enumerate(request.memories, start=1)}
            numbered = [
                {"n": numbers[memory.id]} | _memory_fields(memory, request.kind)
                for memory in request.memories_to_decide
            ]
            cluster = [{"cluster": escape_tags_on_one_line(request.cluster)}] if request.cluster else []
            return enclose_in_memory_tag(*map(json_with_escaped_tags, [*cluster, *numbered]))


def enclose_in_memory_tag(*lines: str) -> str:
    return "\n".join(["<memory>", *lines, "</memory>"])


def json_with_escaped_tags(value: dict[str, Any]) -> str:
    """Quoted as a whole too: `<` at the end of one text and `memory>` in the next could be read as a tag."""
    return escape_tags_on_one_line(json.dumps(value, ensure_ascii=False))


def _memory_fields(memory: MemoryInDecisionRequest, kind: DecisionKind) -> dict[str, Any]:
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
        told = {"setting": memory.setting, "dialogue": memory.dialogue, "lesson": memory.lesson}
        fields |= {name: _with_escaped_tags(value) for name, value in told.items() if value}
        fields |= {"category": memory.category} if memory.category != "episodic" else {}
        if memory.status != "active":
            stored = {"stored": memory.stored} if memory.stored != memory.when else {}
            fields |= {"status": memory.status, **stored, "last_asked": memory.last_asked or "never"}
        fields |= {"truth": memory.truth} if memory.truth != "current" else {}
        fields |= {"pinned": True} if memory.pinned else {}
    return fields


def _brief_memory_fields(
    memory: MemoryInDecisionRequest, kind: DecisionKind, of_request: Mapping[str, Any]
) -> dict[str, Any]:
    """Without what goes without saying: an importance near the one that a memory has unless it is told otherwise, that
    it was never asked for, an actor whom the text names first, and what the request says of all."""
    fields = _memory_fields(memory, kind)
    usual = {"last_asked": "never", "status": of_request.get("status")}
    if round(abs(memory.importance - DEFAULT_IMPORTANCE), 2) < MIN_TELLING_IMPORTANCE_DIFFERENCE:
        usual["importance"] = fields.get("importance")
    named = [actor for actor in memory.actors if not memory.text.startswith(f"{actor}:")]
    return {
        name: value
        for name, value in fields.items()
        if value != usual.get(name) and not (name == "actors" and not named)
    }


def _with_escaped_tags(value: str | Sequence[str]) -> str | list[str]:
    return escape_tags_on_one_line(value) if isinstance(value, str) else [*map(escape_tags_on_one_line, value)]


def _escaped_lines_joined_by_slashes(text: str) -> str:
    return escape_tags_on_one_line(" / ".join(line for line in text.splitlines() if line.strip()))
