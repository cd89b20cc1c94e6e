"""What a tool is, and what it is called with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from madeleine.memory.audit import RecordAuditEvent
from madeleine.memory.context.context import BuildPromptContext
from madeleine.memory.context.profile import EditProfile
from madeleine.memory.core_blocks.core_blocks import EditCoreBlocks
from madeleine.memory.errors import StorageError
from madeleine.memory.graph.graph import ExploreEntityGraph
from madeleine.memory.ingest.ingest import IngestText
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.ingest.truth import ChangeMemoryTruth
from madeleine.memory.ingest.update_and_forget import ForgetMemories, UpdateMemory
from madeleine.memory.language_model import LanguageModel
from madeleine.memory.lessons.lessons import LearnLessons
from madeleine.memory.model import MemoryLevel, Scope
from madeleine.memory.organisation.knowledge import OrganisationKnowledge
from madeleine.memory.permissions import Permission
from madeleine.memory.recall.outside_memories import FindNonMemoryMatches
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.search import BrowseMemories, SearchStoredTexts
from madeleine.memory.retention.archive import MemoryArchive
from madeleine.memory.retention.levels import scope_at_level
from madeleine.memory.short_ids import ShortIdTranslator
from madeleine.memory.watch.observe import ObserveConversation
from madeleine.patrol.run import RunPatrols
from madeleine.tools.arguments import ToolArguments

ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


@dataclass(frozen=True, slots=True)
class ToolUseCases:
    """The use cases behind the tools."""

    store: StoreScenes
    ingest: IngestText
    update: UpdateMemory
    change_truth: ChangeMemoryTruth
    forget: ForgetMemories
    recall: RecallMemories
    search: SearchStoredTexts
    find_non_memory_matches: FindNonMemoryMatches
    browse: BrowseMemories
    patrol: RunPatrols
    audit: RecordAuditEvent
    observe: ObserveConversation
    context: BuildPromptContext
    profile: EditProfile
    organisation: OrganisationKnowledge
    lessons: LearnLessons
    graph: ExploreEntityGraph
    core_blocks: EditCoreBlocks
    archive: MemoryArchive
    short_ids: ShortIdTranslator


ReportProgress = Callable[[float, float, str], None]
"""(done, total, message); returns at once."""


@dataclass(frozen=True, slots=True)
class ToolCallContext:
    """One tool call. The scope is the connection's (ruling 12)."""

    scope: Scope
    use_cases: ToolUseCases
    report_progress: ReportProgress = field(default=lambda done, total, message: None)
    request_key: Callable[[], str] = field(default=lambda: "")
    """The same key when a client repeats a request after its connection broke; "" where that does not happen."""
    language_model: LanguageModel | None = None
    """By the caller's key, or by the server's; valid during the call. None where there is none."""

    def in_project(self, project: str) -> ToolCallContext:
        """The call in a project that its arguments name; "" for that of the connection."""
        return replace(self, scope=replace(self.scope, project=project)) if project else self

    def at_memory_level(self, level: MemoryLevel | None) -> ToolCallContext:
        """The call at a level that its arguments name. Raises `InvalidInput`."""
        return replace(self, scope=scope_at_level(self.scope, level))

    async def replace_ids_with_short_ids(self, message: str) -> str:
        """The message with short ids for full ones; as it is if they cannot be looked up now."""
        with suppress(StorageError):
            return await self.use_cases.short_ids.text_with_short_ids(self.scope, message)
        return message

    def audit_recall(self, tool: str, ids: Iterable[str]) -> None:
        """Record the memories that an answer shows (spec O4)."""
        self.use_cases.audit(self.scope, "recall", tool=tool, ids=ids)


RunTool = Callable[[ToolCallContext, Any], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`output_schema`: JSON Schema of the answers. `read_only`, `destructive` and `idempotent` are MCP's hints.
    `counts_recalls`: its only change is to count recalls, which MCP's hint calls read-only (ruling 27). `listed`: shown
    in `tools/list`, which is part of every prompt; tools for hooks and programs are callable without."""

    name: str
    description: str
    arguments: type[ToolArguments]
    output_schema: Mapping[str, Any]
    run: RunTool
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    counts_recalls: bool = False
    listed: bool = True
    permission: Permission = "write"
    """Needed for every call, and to see the tool."""
    permission_of: Callable[[Any], Permission] | None = None
    """Needed for these arguments besides."""

    def required_permissions(self, arguments: Any) -> frozenset[Permission]:
        return frozenset({self.permission, *([self.permission_of(arguments)] if self.permission_of else [])})


def tool_from_function(
    arguments: type[ArgumentsT], schema: Mapping[str, Any], *, name: str = "", **flags: Any
) -> Callable[[Callable[[ToolCallContext, ArgumentsT], Awaitable[dict[str, Any]]]], Tool]:
    """Make a function a tool, of this name or its own. Its docstring is the description: product text, for the agent
    that reads it. `schema`: of the answers. `flags`: those of `Tool`."""

    def declare(run: Callable[[ToolCallContext, ArgumentsT], Awaitable[dict[str, Any]]]) -> Tool:
        text = " ".join((run.__doc__ or "").split())
        published = name or run.__name__
        return Tool(name=published, description=text, arguments=arguments, output_schema=schema, run=run, **flags)

    return declare


def object_schema(required: str, **names_by_type: str) -> dict[str, Any]:
    """Each keyword is a JSON type, its value the names of that type, separated by spaces. Items of arrays are not
    described: the list of tools is part of every prompt and has to be short."""
    properties = {name: {"type": type_} for type_, names in names_by_type.items() for name in names.split()}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": required.split()} if required else {})
