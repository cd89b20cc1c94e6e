"""What a tool is, and what it is called with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from madeleine.memory.audit import Audit
from madeleine.memory.context.context import BuildContext
from madeleine.memory.context.profile import EditProfile
from madeleine.memory.ingest.forget import Forget
from madeleine.memory.ingest.ingest import Ingest
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.ingest.update import UpdateMemory
from madeleine.memory.ports import LanguageModel
from madeleine.memory.recall.browse import BrowseMemories
from madeleine.memory.recall.recall import Recall
from madeleine.memory.recall.search import Search
from madeleine.memory.scope import Scope
from madeleine.memory.watch.observe import Observe
from madeleine.patrol.run import Patrol
from madeleine.tools.arguments import Arguments


@dataclass(frozen=True, slots=True)
class UseCases:
    """What the tools can do."""

    store: StoreScenes
    ingest: Ingest
    update: UpdateMemory
    forget: Forget
    recall: Recall
    search: Search
    browse: BrowseMemories
    patrol: Patrol
    audit: Audit
    observe: Observe
    context: BuildContext
    profile: EditProfile


ReportProgress = Callable[[float, float, str], None]
"""(done, total, message); returns at once."""


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and with what at hand. The scope is the connection's (ruling 12)."""

    scope: Scope
    use: UseCases
    progress: ReportProgress = field(default=lambda done, total, message: None)
    request_key: Callable[[], str] = field(default=lambda: "")
    """The same if the client's connection broke and the request is made again; "" where that does not happen."""
    language: LanguageModel | None = None
    """By the caller's key, or by the server's; for the time of the call. None where there is none."""


Run = Callable[[Call, Any], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`answers` is the schema of the structured answer. The four hints are MCP's tool annotations. `shows`: its answers
    give memories, so each call is audited with the ids that its answer names; what only writes is audited by the
    ledger. `only_counts`: it changes nothing but how often memories came to mind. `listed`: clients are told of it; the
    list is in every prompt, and what programs call, hooks and commands, need not be there."""

    name: str
    description: str
    arguments: type[Arguments]
    answers: Mapping[str, Any]
    run: Run
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool = False
    shows: bool = True
    only_counts: bool = False
    listed: bool = True


def answer_schema(required: tuple[str, ...], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "number"}
COUNT: Mapping[str, Any] = {"type": "integer"}
OBJECTS: Mapping[str, Any] = {"type": "array"}
TEXTS: Mapping[str, Any] = {"type": "array"}
"""Of what, the answer shows: the list of tools is in every prompt of every client, and has to be short."""
