"""A memory for a Python program: a client of the process that owns the data directory, or of a server over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import date, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from madeleine.memory.errors import InvalidInput
from madeleine.memory.keyword_search import SearchSource
from madeleine.memory.model import Category, Emotion
from madeleine.models import (
    Cluster,
    Context,
    ForgetResult,
    MemoryPage,
    PatrolReport,
    RecallResult,
    SearchPage,
    StoreResult,
    UpdateResult,
)
from madeleine.server.settings.environment import data_directory, environment, given

if TYPE_CHECKING:
    from madeleine.server.attach.client import OnProgress, ToolClient

__all__ = ["Memory", "connect"]

CLIENT_NAME = "madeleine library"
"""In the provenance of what is stored."""

Moment = datetime | date | str
"""A date alone, a moment, or either in ISO 8601."""


class Memory:
    """One being's memory. Calls may run at the same time.

    Every method raises a `MadeleineError`: `InvalidInput` for arguments that cannot be used, `NotPermitted` if the
    connection may only read, `StorageFull`, `StorageError`, `ConnectionLost` if the server went away (whether the call
    was carried out is then not known: pass `key` to `store` to be able to repeat it), `ServerError` for anything else.
    """

    def __init__(self, call: ToolClient) -> None:
        self._call = call

    async def store(
        self,
        text: str,
        *,
        when: Moment | Sequence[str | Mapping[str, str]] | None = None,
        actors: Sequence[str] | None = None,
        setting: str | None = None,
        dialogue: Sequence[str] | None = None,
        sensory: Sequence[str] | None = None,
        feeling: str | None = None,
        category: Category | None = None,
        importance: float | None = None,
        emotions: Sequence[Emotion] | None = None,
        lesson: str | None = None,
        themes: Sequence[str] | None = None,
        session_id: str | None = None,
        pinned: bool | None = None,
        key: str | None = None,
    ) -> StoreResult:
        """Keep a scene; it is on disk and can be recalled when this returns.

        `text`: what happened, at most 32,000 characters unless the server sets another limit. `when`: its date, or a
        timeline of dates and `{"date": …, "action": …}`. `actors`: the speaker first. `importance`: 0 to 1, 0.5 by
        default. `emotions`: up to three. `pinned`: it never fades. `key`: an idempotency key, so that a repeated call
        stores once; `KeyConflict` if it was used for another text. A text that an earlier memory already says
        reinforces that one instead: see `StoreResult.status`.
        """
        answer = await self._ask(
            "store",
            text=text,
            when=_iso(when) if isinstance(when, date | str) else when,
            actors=actors,
            setting=setting,
            dialogue=dialogue,
            sensory=sensory,
            feeling=feeling,
            category=category,
            importance=importance,
            emotions=emotions,
            lesson=lesson,
            themes=themes,
            session_id=session_id,
            pinned=pinned,
            key=key,
        )
        return StoreResult.model_validate(answer)

    async def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        categories: Sequence[Category] | None = None,
        themes: Sequence[str] | None = None,
        emotions: Sequence[Emotion] | None = None,
        ranking: Literal["blended", "rrf", "linear", "associative"] | None = None,
        token_budget: int | None = None,
        format: Literal["memories", "fragments", "prompt"] = "memories",  # the tool's own name for it
    ) -> RecallResult:
        """Return the few memories nearest in meaning to `query`, best first; none if nothing is related.

        `limit`: 1 to 50, 3 by default. `themes`: all of them. `emotions`: felt now. `token_budget`: tokens of the
        answer, 2,000 by default. `format`: "memories" for `RecallResult.memories`, "fragments" for one string of
        shuffled impressions, "prompt" for a `<memory>` block. What is returned counts as recalled, and so fades later.
        """
        answer = await self._ask(
            "recall",
            query=query,
            limit=limit,
            categories=categories,
            themes=themes,
            emotions=emotions,
            ranking=ranking,
            token_budget=token_budget,
            format=format,
        )
        return RecallResult.model_validate(answer)

    async def search(
        self,
        query: str,
        *,
        mode: Literal["or", "and", "tags"] | None = None,
        themes: Sequence[str] | None = None,
        categories: Sequence[Category] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        sources: Sequence[SearchSource] | None = None,
        include_dead: bool | None = None,
        include_compressed: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> SearchPage:
        """Find memories, diary entries, chat messages and notes by their words, newest first.

        `query`: words or "a phrase"; `mode` says whether any word ("or", the default) or all ("and") must occur, or
        whether the query is a message to take tags from ("tags"). `until` is inclusive. `sources`: all by default.
        `include_dead`: faded memories too, which is the default. `limit`: 1 to 100 a page, 10 by default; `cursor`:
        `next_cursor` of the page before.
        """
        answer = await self._ask(
            "search_memory",
            query=query,
            mode=mode,
            themes=themes,
            categories=categories,
            since=_iso(since),
            until=_iso(until),
            sources=sources,
            include_dead=include_dead,
            include_compressed=include_compressed,
            limit=limit,
            cursor=cursor,
        )
        return SearchPage.model_validate(answer)

    async def memories(
        self,
        ids: Sequence[str] | None = None,
        *,
        cluster_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> MemoryPage:
        """Return complete memories, faded ones too: by `ids` (at most 50), or those of a cluster, newest first.

        `limit`: 1 to 100 a page of a cluster, 20 by default; `cursor`: `next_cursor` of the page before. Raises
        `InvalidInput` unless either `ids` or `cluster_id` is given.
        """
        if ids is None and cluster_id is None:
            raise InvalidInput("Give ids or cluster_id; the clusters are listed by clusters().")
        answer = await self._ask("recall_memory", memory_ids=ids, cluster_id=cluster_id, limit=limit, cursor=cursor)
        return MemoryPage.model_validate(answer)

    async def clusters(self) -> tuple[Cluster, ...]:
        """Return the topics that patrols have sorted the memories into, roots included."""
        answer = await self._ask("recall_memory")
        return tuple(Cluster.model_validate(cluster) for cluster in answer["clusters"])

    async def update(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        importance: float | None = None,
        themes: Sequence[str] | None = None,
        pinned: bool | None = None,
    ) -> UpdateResult:
        """Correct a memory; what is left out stays. The earlier state is kept in `CompleteMemory.history`."""
        answer = await self._ask(
            "update_memory", memory_id=memory_id, text=text, importance=importance, themes=themes, pinned=pinned
        )
        return UpdateResult.model_validate(answer)

    async def forget(self, ids: Sequence[str]) -> ForgetResult:
        """Erase memories (at most 50) for good, with the messages that they were drawn from. Cannot be undone."""
        return ForgetResult.model_validate(await self._ask("forget", memory_ids=ids))

    async def patrol(
        self,
        *,
        steps: Sequence[str] | None = None,
        dry_run: bool | None = None,
        decisions: Sequence[Mapping[str, Any]] | None = None,
        undo: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> PatrolReport:
        """Tidy the memory: cluster, fade, revive, merge and split. Takes seconds to minutes.

        `steps`: all by default. `dry_run`: only report what would change. `decisions`: answers to the `pending` of an
        earlier report, as its `guidance` says; an empty list shows what is pending. `undo`: the `run_id` of a patrol
        whose changes are to be put back; `CannotUndo` if they cannot. `decisions` and `undo` stand alone.
        `on_progress` is awaited with (steps done, steps in all, message).
        """
        answer = await self._ask(
            "run_patrol",
            on_progress,
            steps=steps,
            dry_run=dry_run,
            decisions=decisions,
            undo=undo,
        )
        return PatrolReport.model_validate(answer)

    async def context(
        self,
        message: str | None = None,
        *,
        session_id: str | None = None,
        token_limit: int | None = None,
        blocks: Sequence[str] | None = None,
        flags: Mapping[str, bool | int] | None = None,
    ) -> Context:
        """Return a context for the answer to `message`: as blocks and as one prompt of at most `token_limit` tokens.

        `blocks`: only these of "system_prompt", "snapshot" and so on. `flags`: the tool's switches, such as
        `{"enable_memories": False, "context_verbosity": 5}`.
        """
        answer = await self._ask(
            "context", message=message, session_id=session_id, token_limit=token_limit, blocks=blocks, **(flags or {})
        )
        return Context.model_validate(answer)

    async def _ask(self, tool: str, on_progress: OnProgress | None = None, /, **arguments: Any) -> dict[str, Any]:
        """Call the tool with the arguments that are not None."""
        given = {
            name: list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
            for name, value in arguments.items()
            if value is not None
        }
        return await self._call(tool, given, on_progress=on_progress)


def _iso(moment: Moment | None) -> str | None:
    return moment.isoformat() if isinstance(moment, date) else moment


@asynccontextmanager
async def connect(
    *,
    being: str | None = None,
    data_dir: str | PathLike[str] | None = None,
    url: str | None = None,
    token: str | None = None,
) -> AsyncIterator[Memory]:
    """Connect to the memory of a being.

    Without `url`: to the process that owns `data_dir`, which is started if there is none and shared with all other
    clients (MCP clients, commands, other programs). `being` and `data_dir` are by default what `MADELEINE_BEING` and
    `MADELEINE_DATA_DIR` say, else "default" and the platform's directory for a user's data.

    With `url`: to a server (`madeleine serve --http`), as in "https://example.org/mcp"; the `token` says which being.

    Raises `InvalidInput` for arguments that do not go together, `AuthenticationFailed` if the server does not accept
    the token, `ServerUnavailable` if there is no server, or the host cannot be started.
    """
    if url is None:
        if token is not None:
            raise InvalidInput("token goes with url: a data directory needs none.")
        connection = _host_connection(being, data_dir)
    elif being is not None or data_dir is not None:
        raise InvalidInput("being and data_dir do not go with url: the token says whose memory it is.")
    else:
        from madeleine.server.attach.http_client import http_client

        connection = http_client(url, token or "", CLIENT_NAME)
    async with connection as call:
        yield Memory(call)


def _host_connection(
    being: str | None, data_dir: str | PathLike[str] | None
) -> AbstractAsyncContextManager[ToolClient]:
    from madeleine.server.attach.client import host_client

    variables = environment()
    # The tools that were chosen for a model are not those that a program may call.
    settings = {name: value for name, value in given(variables).items() if name not in ("tools", "exclude_tools")}
    settings["toolsets"] = "all"
    directory = data_directory(str(data_dir) if data_dir is not None else settings.pop("data_dir", None))
    settings.pop("data_dir", None)
    if being is not None:
        settings["being"] = being
    return host_client(directory, variables, settings, CLIENT_NAME)
