"""A memory for a Python program: a client of the process that owns the data directory, or of a server over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

from madeleine import models
from madeleine.arguments import (
    ClusterMemoriesArguments,
    ContextArguments,
    Moment,
    ObserveArguments,
    PatrolArguments,
    RecallArguments,
    SearchArguments,
    SearchSharedArguments,
    ShareArguments,
    StoreArguments,
    UpdateArguments,
)
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Role
from madeleine.server.settings.environment import (
    read_environment_variables,
    resolve_data_directory,
    setting_values_from_variables,
)

if TYPE_CHECKING:
    from madeleine.server.attach.client import ToolClient, ToolProgressCallback

__all__ = ["Memory", "connect"]

LIBRARY_CLIENT_NAME = "madeleine library"
"""In the provenance of what is stored."""

LibraryAnswerT = TypeVar("LibraryAnswerT", bound=models.ClientAnswerBaseModel)


class Memory:
    """One being's memory. Calls may run at the same time.

    Every method raises a `MadeleineError`: `InvalidInput` for arguments that cannot be used, `NotPermitted` if the
    connection may only read, `StorageFull`, `StorageError`, `ConnectionLost` if the server went away (whether the call
    was carried out is then not known: pass `key` to `store` to be able to repeat it), `ServerError` for anything else.
    """

    def __init__(self, call: ToolClient) -> None:
        self._call = call

    async def store(self, text: str, **optional: Unpack[StoreArguments]) -> models.StoreResult:
        """Keep a scene: what happened, in at most 32,000 characters unless the server sets another limit.

        It is on disk and can be recalled when this returns. A text that an earlier memory already says reinforces that
        one instead: see `StoreResult.status`. Raises `KeyConflict` if the key was used for another text,
        `NotCurrent` if the memory to supersede is not true any more.
        """
        return await self._ask(models.StoreResult, "store", text=text, **optional)

    async def store_scenes(self, scenes: Sequence[Mapping[str, Any]]) -> models.StoreScenesResult:
        """Keep several scenes (at most 20), each a mapping with "text" and the arguments of `store`. One that cannot be
        stored does not keep the others from being stored; if none can, that is raised as of `store`."""
        told = [{name: iso_text_if_date_else_unchanged(value) for name, value in scene.items()} for scene in scenes]
        return await self._ask(models.StoreScenesResult, "store", scenes=told)

    async def recall(self, query: str = "", **optional: Unpack[RecallArguments]) -> models.RecallResult:
        """Return the few memories nearest in meaning to `query`, best first; none if nothing is related. Without a
        query, `start`: what is good to know when a conversation begins.

        What is returned counts as recalled, and so fades later.
        """
        return await self._ask(
            models.RecallResult,
            "recall",
            **({"query": query} if query else {}),
            **{"format": "memories", "details": True, **optional},
        )

    async def search(self, query: str = "", **optional: Unpack[SearchArguments]) -> models.SearchPage:
        """Find memories, diary entries, chat messages and notes by words or "a phrase", newest first; without a query
        list the memories."""
        asked = {"query": query} if query else {}
        return await self._ask(models.SearchPage, "search_memory", **asked, **{"details": True, **optional})

    async def memories(
        self, ids: Sequence[str] | None = None, **of_cluster: Unpack[ClusterMemoriesArguments]
    ) -> models.MemoryPage:
        """Return complete memories, faded ones too: by `ids` (at most 50), or those of a cluster, newest first.

        Raises `InvalidInput` unless either `ids` or `cluster_id` is given.
        """
        if ids is None and "cluster_id" not in of_cluster:
            raise InvalidInput("Give ids or cluster_id; the clusters are listed by clusters().")
        by_id = {} if ids is None else {"ids": ids}
        return await self._ask(models.MemoryPage, "recall_memory", **{"details": True, **by_id, **of_cluster})

    async def clusters(self) -> tuple[models.Cluster, ...]:
        """Return the topics that patrols have sorted the memories into, roots included."""
        return (await self._ask(models.ClusterList, "recall_memory")).clusters

    async def update(self, memory_id: str, **changes: Unpack[UpdateArguments]) -> models.UpdateResult:
        """Correct a memory, or say that a fact has changed (`when`) or was wrong (`retracted`); what is left out stays.

        A corrected text is kept in `MemoryRecord.history`, what was true before in `MemoryRecord.versions`. Raises
        `NotCurrent` for a memory that was superseded or retracted already, `CannotUndo`.
        """
        return await self._ask(models.UpdateResult, "update_memory", id=memory_id, **changes)

    async def forget(self, ids: Sequence[str], *, wait: bool = False) -> models.ForgetResult:
        """Erase memories (at most 50) for good, with the messages that they were drawn from. Cannot be undone.

        No answer has them any more; the bytes on disk are overwritten within `MADELEINE_ERASURE_SECONDS`, with `wait`
        before this returns (for at most 20 s; `ForgetResult.notice` tells if it takes longer).
        """
        return await self._ask(models.ForgetResult, "forget", ids=ids, wait=wait)

    async def patrol(
        self, *, on_progress: ToolProgressCallback | None = None, **optional: Unpack[PatrolArguments]
    ) -> models.PatrolReport:
        """Tidy the memory: cluster, fade, revive, merge and split. Takes seconds to minutes.

        `on_progress` is awaited with (steps done, steps in all, message). Raises `CannotUndo`.
        """
        return await self._ask(models.PatrolReport, "run_patrol", on_progress, **{"details": True, **optional})

    async def context(self, **optional: Unpack[ContextArguments]) -> models.PromptContext:
        """Return a context for the answer to a message: as blocks, and as one prompt."""
        return await self._ask(models.PromptContext, "context", **optional)

    async def observe(
        self, session_id: str, messages: Sequence[Mapping[str, Any]], **optional: Unpack[ObserveArguments]
    ) -> models.ObserveMessagesResult:
        """Append messages (at most 100, in order) to the history of a conversation, word for word; what is worth
        remembering of them becomes memories. Each is a mapping with "role" ("user", "assistant", "system" or "tool"),
        "text" and, if known, "speaker", "when" and "key", an id within the session: a repeated one is kept once."""
        told = [
            {name: iso_text_if_date_else_unchanged(value) for name, value in message.items()} for message in messages
        ]
        return await self._ask(
            models.ObserveMessagesResult, "observe", session_id=session_id, messages=told, **optional
        )

    async def share(self, text: str = "", **optional: Unpack[ShareArguments]) -> models.KnowledgeSharingResult:
        """Share what every being of this store should know, under this being's name.

        Raises `NotPermitted` for a kind that the role of this connection may not write, `NotCurrent`, `KeyConflict`.
        """
        return await self._ask(models.KnowledgeSharingResult, "share", **({"text": text} if text else {}), **optional)

    async def search_shared(
        self, query: str = "", **optional: Unpack[SearchSharedArguments]
    ) -> tuple[models.SharedRecord, ...]:
        """Return what matches among what all share and this being's own memories, best first; without a query, what is
        shared, policies first."""
        asked = {"query": query} if query else {}
        return (await self._ask(models.PageOfSharedMemories, "search_shared", **asked, **optional)).memories

    async def retract(
        self, shared_id: str, reason: str = "", *, undo: bool = False, erase: bool = False
    ) -> models.RetractionResult:
        """Take back what was shared: it was wrong for a `reason`, or is to be erased for good. `undo` takes back its
        last supersession or retraction. Raises `NotPermitted`, `NotCurrent`."""
        given = {"reason": reason, "undo": undo, "erase": erase}
        chosen = {name: value for name, value in given.items() if value}
        return await self._ask(models.RetractionResult, "retract", id=shared_id, **chosen)

    async def related(
        self, entity: str = "", *, hops: Literal[1, 2] = 1, as_of: Moment | None = None, limit: int = 10
    ) -> models.Related:
        """Follow what memories tell around an entity: relations, neighbours, timeline. Without one: the commonest."""
        return await self._ask(models.Related, "related", entity=entity or None, hops=hops, as_of=as_of, limit=limit)

    async def core_memory(self, name: str = "") -> models.CoreBlocks:
        """All core blocks; with a name all versions of this one, the oldest first."""
        return await self._ask(models.CoreBlocks, "core_memory", name=name or None)

    async def edit_core_memory(
        self,
        name: str,
        text: str | None = None,
        *,
        version: int = 0,
        old: str | None = None,
        append: bool = False,
        description: str | None = None,
        max_chars: int | None = None,
        erase: bool = False,
    ) -> models.EditedCoreBlock:
        """Write a core block whole, in place of `old`, or behind what stands there; or erase it. `version`: the one
        that was read, 0 for a new block. Raises `CoreBlockEditConflict` if it is not the current one any more."""
        given: dict[str, Any] = {"text": text or None, "old": old, "description": description, "max_chars": max_chars}
        flags = {"append": append, "erase": erase, "version": version}
        return await self._ask(models.EditedCoreBlock, "edit_core_memory", name=name, **given, **flags)

    async def _ask(
        self,
        answer: type[LibraryAnswerT],
        tool: str,
        on_progress: ToolProgressCallback | None = None,
        /,
        **arguments: Any,
    ) -> LibraryAnswerT:
        # In Python None stands for an argument that is left out; the tools refuse null.
        dated = {name: iso_text_if_date_else_unchanged(value) for name, value in arguments.items() if value is not None}
        return answer.model_validate(await self._call(tool, dated, on_progress=on_progress))


def iso_text_if_date_else_unchanged(value: Any) -> Any:
    """A date or moment as text; anything else as it is."""
    return value.isoformat() if isinstance(value, date) else value


@asynccontextmanager
async def connect(
    *,
    being: str | None = None,
    data_dir: str | PathLike[str] | None = None,
    role: Role | None = None,
    url: str | None = None,
    token: str = "",
) -> AsyncIterator[Memory]:
    """Connect to the memory of a being.

    Without `url`: to the process that owns `data_dir`, which is started if there is none and shared with all other
    clients (MCP clients, commands, other programs). `being` and `data_dir` are by default what `MADELEINE_BEING` and
    `MADELEINE_DATA_DIR` say, else "default" and the platform's directory for a user's data; `role` what
    `MADELEINE_ROLE` says, else "senior".

    With `url`: to a server (`madeleine serve --http`), as in "https://example.org/mcp"; the `token` says which being
    and role.

    Raises `InvalidInput` for arguments that do not go together, `AuthenticationFailed` if the server does not accept
    the token, `ServerUnavailable` if there is no server, or the host cannot be started.
    """
    if url is None:
        if token:
            raise InvalidInput("token goes with url: a data directory needs none.")
        connection = host_connection(being, data_dir, {} if role is None else {"role": role})
    elif being is not None or data_dir is not None or role is not None:
        raise InvalidInput("being, role and data_dir do not go with url: the token says whose memory it is.")
    else:
        from madeleine.server.attach.http_client import open_http_tool_client

        connection = open_http_tool_client(url, token, LIBRARY_CLIENT_NAME)
    async with connection as call:
        yield Memory(call)


def host_connection(
    being: str | None, data_dir: str | PathLike[str] | None, own: Mapping[str, str]
) -> AbstractAsyncContextManager[ToolClient]:
    """`own`: settings in place of those of the environment."""
    from madeleine.server.attach.client import open_host_client

    variables = read_environment_variables()
    # The tools that were chosen for a model are not those that a program may call.
    settings = {
        name: value
        for name, value in setting_values_from_variables(variables).items()
        if name not in ("tools", "exclude_tools")
    }
    settings |= {"toolsets": "all", **own}
    own_dir = settings.pop("data_dir", None)
    if being is not None:
        settings["being"] = being
    directory = resolve_data_directory(own_dir if data_dir is None else str(data_dir))
    return open_host_client(directory, variables, settings, LIBRARY_CLIENT_NAME)
