"""`madeleine patrol`: run, undo, list or watch patrols (spec P12). The host of the memory makes all changes."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, get_args

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.patrol_records import PatrolRun
from madeleine.patrol.report import StepName
from madeleine.server.attach.connector import NoHost
from madeleine.server.cli.output import client_settings, console, host_tool, print_json, printable
from madeleine.server.cli.patrol_display import event_display, progress_on, run_summary, runs_table, show_report
from madeleine.server.settings.environment import environment
from madeleine.server.settings.settings import Settings

NAME = "madeleine patrol"
NAMES: tuple[StepName, ...] = get_args(StepName)
RECONNECT_SECONDS = 1.0


async def patrol_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code: 1 if a step failed. Raises `HostRefused`, and the error that the tool answers with."""
    verb = {None: run, "undo": undo, "runs": show_runs}[arguments.verb]
    if arguments.watch:
        if arguments.verb or arguments.steps or arguments.dry_run:
            raise InvalidInput("--watch stands alone, or with --json: it shows what patrols do and starts none.")
        verb = watch
    return await verb(settings, arguments)


async def run(settings: Settings, arguments: argparse.Namespace) -> int:
    chosen: dict[str, Any] = {"dry_run": True} if arguments.dry_run else {}
    if arguments.steps is not None:
        chosen["steps"] = steps_of(arguments.steps)
    report = await ask(settings, chosen)
    if arguments.json:
        print_json(report)
    else:
        show_report(console(), report)
    return 1 if any(step.get("failed") for step in report["steps"]) else 0


async def undo(settings: Settings, arguments: argparse.Namespace) -> int:
    answer = await ask(settings, {"undo": arguments.run})
    if arguments.json:
        print_json(answer)
    else:
        undone = {name: count for name, count in answer.get("undone", {}).items() if count}
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in undone.items())
        print(f"The patrol {printable(arguments.run)} is undone: {counts or 'nothing was to be changed'}.")
    return 0


async def show_runs(settings: Settings, arguments: argparse.Namespace) -> int:
    """From the ledger alone, as the audit: safe beside a running host, and it starts none."""
    from madeleine.server.wiring.ledgers import ledger_alone

    if arguments.limit < 1:
        raise InvalidInput("--limit must be at least 1.")
    async with ledger_alone(settings, create=False) as ledger:
        runs = await ledger.patrols.runs(Scope(BeingId(settings.being), NAME), limit=arguments.limit)
    if arguments.json:
        print_json([as_json(run) for run in runs])
    elif runs:
        console().print(runs_table(runs))
    else:
        print(f"No patrol of {settings.being!r} has run yet.")
    return 0


async def watch(settings: Settings, arguments: argparse.Namespace) -> int:
    """Until SIGINT or SIGTERM. Waits for the next host if the host ends, but does not start another one."""
    from madeleine.server.attach.client import patrol_events, start_host
    from madeleine.server.mcp.stdio import stop_signals

    watching = asyncio.current_task()
    assert watching is not None

    def end() -> None:
        watching.cancel()

    with stop_signals(end), suppress(asyncio.CancelledError), event_display(console()) as show:
        await start_host(settings.data_dir, environment())
        while True:
            with suppress(NoHost):
                async with patrol_events(settings.data_dir, client_settings("run_patrol")) as events:
                    print(f"Watching for patrols of {settings.being!r}. Ctrl-C ends this.", file=sys.stderr, flush=True)
                    async for event in events:
                        if arguments.json:
                            print(json.dumps(event, ensure_ascii=False), flush=True)
                        else:
                            show(event)
            await asyncio.sleep(RECONNECT_SECONDS)
    return 0


async def ask(settings: Settings, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What `run_patrol` answers. Raises as `ToolClient` does."""
    with progress_on(console(sys.stderr)) as show_progress:

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            show_progress(progress, total or 0, message or "")

        when_lost = "`madeleine patrol runs` shows its result."
        async with host_tool(settings, "run_patrol", command=NAME, when_lost=when_lost) as call:
            return await call("run_patrol", arguments, on_progress=on_progress)


def steps_of(written: str) -> list[str]:
    """Names separated by commas. Raises `InvalidInput`."""
    steps = [name for part in written.split(",") if (name := part.strip())]
    if unknown := [name for name in steps if name not in NAMES]:
        raise InvalidInput(f"--steps: there is no step {unknown[0]!r}. Known are {', '.join(NAMES)}.")
    if not steps:
        raise InvalidInput(f"--steps: name some of {', '.join(NAMES)}, separated by commas.")
    return steps


def as_json(run: PatrolRun) -> dict[str, Any]:
    ended = {} if run.state == "running" else {"finished": run.finished.isoformat()}
    about = {"run_id": run.id, "state": run.state, "started": run.started.isoformat(), **ended}
    return about | {"changed": run_summary(run), "report": dict(run.report)}
