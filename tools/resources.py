"""Resources: what a client can read of a memory without calling a tool (spec P5)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import mcp_types as types

from madeleine.memory.context.values import BuiltContext, ContextBlock, ContextQuery
from madeleine.memory.model import BeingId
from madeleine.tools import profile
from madeleine.tools.context import node
from madeleine.tools.tool import Call

SCHEME = "memory"
MARKDOWN, JSON = "text/markdown", "application/json"
WHOLE = 1_000_000
"""Tokens: a resource is read by somebody who wants it whole."""

Read = Callable[[Call], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Offered:
    name: str
    description: str
    mime_type: str
    read: Read


async def snapshot(call: Call) -> str:
    built = await _built(call, "snapshot", token_limit=call.use.context.token_limit)
    return built.snapshot[0].content if built.snapshot else ""


async def recent(call: Call) -> str:
    built = await _built(call, "recent_nodes")
    return _json({"recent_nodes": [node(memory) for memory in built.recent_nodes or ()]})


async def diary(call: Call) -> str:
    built = await _built(call, "diary")
    return _json({"diary": [{"date": day.date, "text": day.text} for day in built.diary or ()]})


async def whole_profile(call: Call) -> str:
    shown = await profile.show(call, None, None)
    call.use.audit(call.scope, "recall", tool="memory://profile", ids=profile.shown(shown))
    return _json(shown)


OFFERED = (
    Offered("snapshot", "Open notes, knowledge, and the diary of the last 7 days.", MARKDOWN, snapshot),
    Offered("recent", "The 5 memories that came to mind last.", JSON, recent),
    Offered("diary", "The diary of the last 7 days, in full.", JSON, diary),
    Offered("profile", "Soul, partner rules, preferences, relationships, tools, map, knowledge.", JSON, whole_profile),
)


def of_being(being: BeingId) -> list[types.Resource]:
    """Those of one being: others are not told that there are any more."""
    return [
        types.Resource(uri=uri(being, one.name), name=one.name, description=one.description, mime_type=one.mime_type)
        for one in OFFERED
    ]


def uri(being: BeingId, name: str) -> str:
    return f"{SCHEME}://{quote(being, safe='')}/{name}"


def named(wanted: str, being: BeingId) -> Offered | None:
    """None for what there is not, and for what is another's (ruling 12)."""
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return None
    if parts.scheme != SCHEME or unquote(parts.netloc) != being or parts.query or parts.fragment:
        return None
    return next((one for one in OFFERED if parts.path == f"/{one.name}"), None)


async def _built(call: Call, block: ContextBlock, *, token_limit: int = WHOLE) -> BuiltContext:
    use = call.use.context
    whole = block == "diary"
    flags = replace(use.flags, enable_ai_diary=True, ai_diary_full=True, prompt_lite_mode=False) if whole else use.flags
    built = await use(call.scope, ContextQuery(token_limit=token_limit, blocks=frozenset({block}), flags=flags))
    call.use.audit(call.scope, "recall", tool=f"memory://{block}", ids=built.shown)
    return built


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
