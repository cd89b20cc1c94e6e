"""Resources: parts of a memory that a client can read without calling a tool (spec P5)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import mcp_types as types

from madeleine.memory.context.values import BuiltContext, ContextBlock, ContextQuery
from madeleine.memory.model import BeingId
from madeleine.tools import profile
from madeleine.tools.context import node_as_json
from madeleine.tools.tool import Call

SCHEME = "memory"
MARKDOWN, JSON = "text/markdown", "application/json"
UNLIMITED_TOKENS = 1_000_000
"""Resources are returned whole."""

Read = Callable[[Call], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class MemoryResource:
    name: str
    description: str
    mime_type: str
    read: Read


async def snapshot(call: Call) -> str:
    context = await _build(call, "snapshot", token_limit=call.use.context.token_limit)
    return context.snapshot[0].content if context.snapshot else ""


async def recent(call: Call) -> str:
    context = await _build(call, "recent_nodes")
    return _json({"recent_nodes": [node_as_json(memory) for memory in context.recent_nodes or ()]})


async def diary(call: Call) -> str:
    context = await _build(call, "diary")
    return _json({"diary": [asdict(day) for day in context.diary or ()]})


async def whole_profile(call: Call) -> str:
    content = await profile.show(call, None, None)
    call.use.audit(call.scope, "recall", tool="memory://profile", ids=profile.shown_ids(content))
    return _json(content)


RESOURCES = (
    MemoryResource("snapshot", "Open notes, knowledge, and the diary of the last 7 days.", MARKDOWN, snapshot),
    MemoryResource("recent", "The 5 memories recalled last.", JSON, recent),
    MemoryResource("diary", "The diary of the last 7 days, in full.", JSON, diary),
    MemoryResource(
        "profile", "Soul, partner rules, preferences, relationships, tools, map, knowledge.", JSON, whole_profile
    ),
)


def of_being(being: BeingId) -> list[types.Resource]:
    """The resources of one being; those of others are not disclosed."""
    return [
        types.Resource(uri=uri(being, r.name), name=r.name, description=r.description, mime_type=r.mime_type)
        for r in RESOURCES
    ]


def uri(being: BeingId, name: str) -> str:
    return f"{SCHEME}://{quote(being, safe='')}/{name}"


def find(requested: str, being: BeingId) -> MemoryResource | None:
    """The resource of this URI; None for unknown URIs and for another being's (ruling 12)."""
    try:
        parts = urlsplit(requested)
    except ValueError:
        return None
    if parts.scheme != SCHEME or unquote(parts.netloc) != being or parts.query or parts.fragment:
        return None
    return next((resource for resource in RESOURCES if parts.path == f"/{resource.name}"), None)


async def _build(call: Call, block: ContextBlock, *, token_limit: int = UNLIMITED_TOKENS) -> BuiltContext:
    build = call.use.context
    flags = build.flags
    if block == "diary":
        flags = replace(flags, enable_ai_diary=True, ai_diary_full=True, prompt_lite_mode=False)
    context = await build(call.scope, ContextQuery(token_limit=token_limit, blocks=frozenset({block}), flags=flags))
    call.use.audit(call.scope, "recall", tool=f"memory://{block}", ids=context.shown)
    return context


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
