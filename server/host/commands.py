"""Commands that a host carries out, because only it may write to the index, or for as long as they take."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from madeleine.memory.errors import InvalidInput, MadeleineError, ServerError, error_as_json
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.moving.export_file import MAX_EXPORT_LINE_BYTES
from madeleine.memory.moving.sources.values import ImportedStatement
from madeleine.server.mcp.lines import WriteBytes
from madeleine.server.settings.settings import Settings

if TYPE_CHECKING:
    from madeleine.server.wiring.open_memory import OpenedMemoryStore

    OpenMemoryFunction = Callable[[], Awaitable[OpenedMemoryStore]]

logger = logging.getLogger(__name__)

ReportCommandProgress = Callable[[int, int], None]
"""(done, total); may be called in any thread."""
HostCommandHandler = Callable[[Settings, Mapping[str, str], ReportCommandProgress], Awaitable[dict[str, Any]]]
IMPORT_CLIENT_NAME = "madeleine import"
_IMPORTED_STATEMENTS_ADAPTER = TypeAdapter(dict[str, ImportedStatement])


async def run_host_command_and_report(
    run: HostCommandHandler, settings: Settings, arguments: Mapping[str, str], write: WriteBytes
) -> None:
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def report_progress(done: int, total: int) -> None:
        loop.call_soon_threadsafe(events.put_nowait, {"done": done, "total": total})

    running = asyncio.ensure_future(_host_command_outcome_as_json(run, settings, arguments, report_progress))
    running.add_done_callback(lambda task: None if task.cancelled() else events.put_nowait(task.result()))
    try:
        with suppress(ConnectionError):
            while True:
                event = await events.get()
                await write(json.dumps(event, ensure_ascii=False).encode() + b"\n")
                if "done" not in event:
                    return
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _host_command_outcome_as_json(
    run: HostCommandHandler, settings: Settings, arguments: Mapping[str, str], report_progress: ReportCommandProgress
) -> dict[str, Any]:
    try:
        return {"result": await run(settings, arguments, report_progress)}
    except MadeleineError as error:
        return {"error": error_as_json(error), "message": str(error)}
    except Exception:
        logger.exception("the command %s failed", arguments.get("command"))
        failure = ServerError("The command failed; the log of the memory's process says why. Nothing was changed.")
        return {"error": error_as_json(failure), "message": str(failure)}


async def run_host_command(
    open_memory: OpenMemoryFunction,
    settings: Settings,
    arguments: Mapping[str, str],
    report_progress: ReportCommandProgress,
) -> dict[str, Any]:
    """Raises `InvalidInput` for a command of a later version, and what the command raises."""
    match arguments.get("command"):
        case "import":
            return await _import_madeleine_export(open_memory, settings, arguments, report_progress)
        case "store_statements":
            return await _store_imported_statements(open_memory, arguments)
        case "undo_import":
            undone = await (await open_memory()).import_export.undo(
                arguments["import"], client=IMPORT_CLIENT_NAME, role=settings.role
            )
            return {"removed": dict(undone.removed), "kept": dict(undone.kept)}
        case command:
            raise InvalidInput(
                f"This memory's process does not know the command {command!r}: `madeleine stop` ends it."
            )


async def _store_imported_statements(open_memory: OpenMemoryFunction, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Of an import from another program, which the command line reads."""
    statements = _IMPORTED_STATEMENTS_ADAPTER.validate_json(arguments["statements"])
    scope = Scope(BeingId(arguments["being"]), IMPORT_CLIENT_NAME)
    outcomes = await (await open_memory()).store_statements(scope, arguments["import"], statements)
    return asdict(outcomes)


async def _import_madeleine_export(
    open_memory: OpenMemoryFunction,
    settings: Settings,
    arguments: Mapping[str, str],
    report_progress: ReportCommandProgress,
) -> dict[str, Any]:
    path = Path(arguments["file"])
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))  # noqa: ASYNC230
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error}. Nothing was imported.") from error
        lines = iter(lambda: file.readline(MAX_EXPORT_LINE_BYTES), b"")
        report = await (await open_memory()).import_export(
            path.name,
            lines,
            client=IMPORT_CLIENT_NAME,
            role=settings.role,
            being=arguments.get("being", ""),
            dry_run=arguments.get("dry_run") == "yes",
            report_progress=report_progress,
        )
    return {
        "import": report.id,
        "added": dict(report.added),
        "known": dict(report.known),
        "left_out_counts": dict(report.left_out_counts),
        "left_out": [asdict(record) for record in report.left_out],
        "renumbered": report.renumbered,
        "redacted": dict(report.redacted),
    }
