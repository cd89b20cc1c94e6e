"""Decision requests as prompts for a language model, and as JSON for the calling agent.

Memories are data: in a prompt they stand between tags that no memory can write (`quoted`), as JSON.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from madeleine.memory.language_model import Prompt
from madeleine.memory.rules.prompting.fragments import quoted
from madeleine.patrol.deciding.requests import DecisionKind, DecisionRequest, OfferedMemory

_TEXTS = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))
SYSTEM: Mapping[str, str] = {kind: f"{text}\n\n{_TEXTS['data']}" for kind, text in _TEXTS["system"].items()}
"""For a language model, by the purpose of the prompt."""
SUMMARIZE: str = _TEXTS["summarize"]
"""spec L3, word for word."""
GUIDANCE: Mapping[DecisionKind, str] = _TEXTS["guidance"]
"""For the agent that reads requests in a tool's answer, once a kind."""
GUIDANCE_FIRST: str = _TEXTS["guidance_first"]
MAX_TOKENS: Mapping[DecisionKind, int] = {"consolidate": 4_000, "split": 4_000, "diary": 2_000, "compress": 1_500}


def prompt_for(request: DecisionRequest) -> Prompt:
    """With numbers for ids (`answers.with_ids`)."""
    return Prompt(
        purpose=request.kind,
        system=SYSTEM[request.kind],
        text=_prompt_text(request),
        size="large",
        max_tokens=MAX_TOKENS[request.kind],
    )


def for_agent(request: DecisionRequest) -> dict[str, Any]:
    """As a tool's answer shows it: with ids, without empty fields."""
    fields = {
        "cluster": quoted(request.cluster),
        "session_id": request.session_id,
        "date": request.date,
        "earlier": _quoted_lines(request.earlier),
        "think": [quoted(point) for point in request.think],
    }
    memories = [{"id": memory.id} | _memory_fields(memory, request.kind) for memory in request.memories]
    given = {name: value for name, value in fields.items() if value}
    return {"offer": request.id, "kind": request.kind, **given, "memories": memories}


def _prompt_text(request: DecisionRequest) -> str:
    match request.kind:
        case "compress":
            lines = (f"- {quoted(f'{memory.when}: {memory.text}')}" for memory in request.memories)
            return SUMMARIZE.format(session_content=block(*lines))
        case "diary":
            entries: list[dict[str, Any]] = []
            if request.earlier:
                entries.append({"earlier": _quoted_lines(request.earlier)})
            if request.think:
                entries.append({"think": [quoted(point) for point in request.think]})
            entries += [_memory_fields(memory, "diary") for memory in request.memories]
            return f"The day: {request.date}\n{block(*map(json_line, entries))}"
        case _:
            numbered = [
                {"n": number} | _memory_fields(memory, request.kind)
                for number, memory in enumerate(request.memories, start=1)
            ]
            return block(*map(json_line, [{"cluster": quoted(request.cluster)}, *numbered]))


def block(*lines: str) -> str:
    return "\n".join(["<memory>", *lines, "</memory>"])


def json_line(value: dict[str, Any]) -> str:
    """Quoted as a whole too: `<` at the end of one text and `memory>` in the next could be read as a tag."""
    return quoted(json.dumps(value, ensure_ascii=False))


def _memory_fields(memory: OfferedMemory, kind: DecisionKind) -> dict[str, Any]:
    """Importance, status and marks only where they bear on the decision."""
    fields: dict[str, Any] = {"when": quoted(memory.when), "text": quoted(memory.text)}
    if memory.feeling and kind != "compress":
        fields["feeling"] = quoted(memory.feeling)
    if memory.actors and kind != "compress":
        fields["actors"] = [quoted(actor) for actor in memory.actors]
    if kind in {"consolidate", "diary"}:
        fields["importance"] = round(memory.importance, 2)
    if kind == "consolidate":
        fields |= {"status": memory.status} if memory.status != "active" else {}
        fields |= {name: True for name in ("fresh", "pinned") if getattr(memory, name)}
    return fields


def _quoted_lines(text: str) -> str:
    return quoted(" / ".join(line for line in text.splitlines() if line.strip()))
