"""`madeleine patrol`: run, undo, list or watch patrols (spec P12). The host of the memory makes all changes."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId, Scope, short_id_of_non_memory
from madeleine.memory.patrol_records import PatrolRun
from madeleine.memory.text.structure import terminal_safe_line, text_without_invisible_chars
from madeleine.patrol.report import PATROL_STEPS, STEP_SKIP_REASON_WITHOUT_MODEL_KEY, PatrolProgress
from madeleine.server.attach.client import ensure_host_running, receive_patrol_events_from_host
from madeleine.server.attach.connector import HostUnavailable
from madeleine.server.cli.output import (
    client_settings_for_one_tool,
    empty_table_with_headings,
    make_console,
    open_tool_client,
    print_json,
)
from madeleine.server.settings.environment import read_environment_variables
from madeleine.server.settings.fields import split_comma_separated_names
from madeleine.server.settings.settings import Settings

PATROL_CLIENT_NAME = "madeleine patrol"
PATROL_WATCH_RECONNECT_SECONDS = 1.0

ShowPatrolProgress = Callable[[float, float, str], None]
"""(done, total, message)."""


async def patrol_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code: 1 if a step failed. Raises `HostRefused`, and the error that the tool answers with."""
    if arguments.watch:
        if arguments.verb or arguments.steps or arguments.dry_run:
            raise InvalidInput("--watch stands alone, or with --json: it shows what patrols do and starts none.")
        await watch_patrols(settings, as_json=arguments.json)
    elif arguments.verb == "runs":
        await print_patrol_runs(settings, limit=arguments.limit, as_json=arguments.json)
    elif arguments.verb == "undo":
        answer = await call_run_patrol(settings, {"undo": arguments.run})
        if arguments.json:
            print_json(answer)
        else:
            counts = nonzero_counts_as_text(answer.get("undone", {}), if_empty="nothing was to be changed")
            print(f"The patrol {terminal_safe_line(arguments.run)} is undone: {counts}.")
    else:
        chosen: dict[str, Any] = {"details": True} | ({"dry_run": True} if arguments.dry_run else {})
        if arguments.steps is not None:
            chosen["steps"] = parse_patrol_steps(arguments.steps)
        report = await call_run_patrol(settings, chosen)
        if arguments.json:
            print_json(report)
        else:
            print_patrol_report(make_console(), report)
        return 1 if any(step.get("failed") for step in report["steps"]) else 0
    return 0


async def print_patrol_runs(settings: Settings, *, limit: int, as_json: bool) -> None:
    """From the ledger alone, as the audit: safe beside a running host, and it starts none."""
    from madeleine.server.wiring.data_directory import open_ledger_without_index

    async with open_ledger_without_index(settings, create=False) as ledger:
        runs = await ledger.patrols.runs(Scope(BeingId(settings.being), PATROL_CLIENT_NAME), limit=limit)
    if as_json:
        print_json([patrol_run_as_json(run) for run in runs])
    elif runs:
        make_console().print(table_of_patrol_runs(runs))
    else:
        print(f"No patrol of {settings.being!r} has run yet.")


async def watch_patrols(settings: Settings, *, as_json: bool) -> None:
    """Until SIGINT or SIGTERM. Waits for the next host if the host ends, but does not start another one."""
    from madeleine.server.mcp.server import call_on_stop_signals

    watching = asyncio.current_task()
    assert watching is not None

    def end() -> None:
        watching.cancel()

    with (
        call_on_stop_signals(end),
        suppress(asyncio.CancelledError),
        open_patrol_event_display(make_console()) as print_event,
    ):
        await ensure_host_running(settings.data_dir, read_environment_variables())
        while True:
            with suppress(HostUnavailable):
                async with receive_patrol_events_from_host(
                    settings.data_dir, client_settings_for_one_tool("run_patrol")
                ) as events:
                    print(f"Watching for patrols of {settings.being!r}. Ctrl-C ends this.", file=sys.stderr, flush=True)
                    async for event in events:
                        if as_json:
                            print(text_without_invisible_chars(json.dumps(event, ensure_ascii=False)), flush=True)
                        else:
                            print_event(event)
            await asyncio.sleep(PATROL_WATCH_RECONNECT_SECONDS)


async def call_run_patrol(settings: Settings, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the tool, whose progress is shown on standard error. Raises as `ToolClient` does."""
    with show_patrol_progress(make_console(sys.stderr)) as show_progress:

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            show_progress(progress, total or 0, message or "")

        when_lost = "`madeleine patrol runs` shows its result."
        async with open_tool_client(settings, "run_patrol", command=PATROL_CLIENT_NAME, lost_hint=when_lost) as call:
            return await call("run_patrol", arguments, on_progress=on_progress)


def parse_patrol_steps(text: str) -> list[str]:
    """Names separated by commas. Raises `InvalidInput`."""
    steps = split_comma_separated_names(text)
    if unknown := [name for name in steps if name not in PATROL_STEPS]:
        raise InvalidInput(f"--steps: there is no step {unknown[0]!r}. Known are {', '.join(PATROL_STEPS)}.")
    if not steps:
        raise InvalidInput(f"--steps: name some of {', '.join(PATROL_STEPS)}, separated by commas.")
    return list(steps)


def patrol_run_as_json(run: PatrolRun) -> dict[str, Any]:
    ended = {} if run.state == "running" else {"finished": run.finished.isoformat()}
    about = {"run_id": short_id_of_non_memory(run.id), "state": run.state, "started": run.started.isoformat(), **ended}
    return about | {"changed": summary_of_patrol_run(run), "report": dict(run.report)}


# --- display ------------------------------------------------------------------------------------------------------


@contextmanager
def show_patrol_progress(out: Console) -> Iterator[ShowPatrolProgress]:
    """A progress bar; a line for each call where there is no terminal."""
    if not out.is_terminal:
        yield lambda done, total, message: out.print(f"{done:g} of {total:g} {terminal_safe_line(message)}".rstrip())
        return
    description = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), description, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("the patrol begins", total=None)
        yield lambda done, total, message: bar.update(
            task, completed=done, total=total, description=terminal_safe_line(message)
        )


@contextmanager
def open_patrol_event_display(out: Console) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Shows events as `patrol_events.as_json` writes them: a progress bar while a patrol runs, then its report."""
    with ExitStack() as running:
        show_progress: ShowPatrolProgress | None = None

        def print_event(event: Mapping[str, Any]) -> None:
            nonlocal show_progress
            if event["event"] in ("ends", "fails"):
                running.close()
                show_progress = None
            elif show_progress is None:
                show_progress = running.enter_context(show_patrol_progress(out))
            if event["event"] == "begins":
                out.print(f"Patrol {short_id_of_non_memory(terminal_safe_line(event['run_id']))} begins")
            elif event["event"] == "fails":
                run = short_id_of_non_memory(terminal_safe_line(event["run_id"]))
                out.print(f"Patrol {run} failed and was rolled back")
            elif event["event"] == "progress" and show_progress:
                names = ("name", "done", "total", "part", "parts")
                progress = PatrolProgress(*(event.get(name, 0) for name in names))
                show_progress(progress.steps_done, progress.total, progress.message)
            elif "report" in event:
                print_patrol_report(out, event["report"])

        yield print_event


def print_patrol_report(out: Console, report: Mapping[str, Any]) -> None:
    """As `PatrolReport.as_json` or `as_json_for_ledger` gives it."""
    if report["steps"]:
        title = "What a patrol would do" if report.get("dry_run") else f"Patrol {terminal_safe_line(report['run_id'])}"
        out.print(title, soft_wrap=True)
        table = empty_table_with_headings("", "step", "result")
        for step in report["steps"]:
            table.add_row(step["step"], step["name"], patrol_step_result_as_text(step))
        out.print(table)
    if decided := report.get("decided"):
        out.print(f"{count_applied_decisions(decided)} of {len(decided)} decisions were applied")
    for line in patrol_report_footer_lines(report):
        out.print(line, soft_wrap=True)


def patrol_step_result_as_text(step: Mapping[str, Any]) -> Text:
    result = Text(nonzero_counts_as_text(step))
    if step.get("failed"):
        result = Text(f"failed: {terminal_safe_line(step['failed'])}", style="red")
    elif step.get("skipped"):
        needs_model = step["skipped"] == STEP_SKIP_REASON_WITHOUT_MODEL_KEY
        result = Text("needs a language model" if needs_model else terminal_safe_line(step["skipped"]), style="dim")
    return result.append("".join(f"\n{terminal_safe_line(note)}" for note in step.get("notes", ())))


def nonzero_counts_as_text(values: Mapping[str, Any], *, if_empty: str = "nothing") -> str:
    """The counts among the values, except those that are 0; `if_empty` if there are no others."""
    counts = {name: count for name, count in values.items() if isinstance(count, int) and count}
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()) or if_empty


def count_applied_decisions(decided: Sequence[Mapping[str, Any]]) -> int:
    return sum(not result.get("refused") for result in decided)


def patrol_report_footer_lines(report: Mapping[str, Any]) -> Iterator[str]:
    open_offers = [*report.get("pending", ()), *report.get("still_open", ())]
    if pending := len(open_offers) + report.get("waiting", 0):
        decisions = "1 decision" if pending == 1 else f"{pending} decisions"
        yield f"{decisions} pending, for an agent that calls run_patrol, or for a language model."
    if spent := report.get("spent"):
        price = f", {spent['usd']:.4f} US dollars" if "usd" in spent else ""
        tokens = spent["input_tokens"] + spent["output_tokens"]
        yield f"{spent['calls']} language model calls: {tokens:,} tokens{price}."
    if not report.get("dry_run"):
        yield f"To undo it: madeleine patrol undo {terminal_safe_line(report['run_id'])}"


def table_of_patrol_runs(runs: Sequence[PatrolRun]) -> Table:
    table = empty_table_with_headings("began", "run", "state", "result", no_wrap=("began", "run", "state"))
    for run in runs:
        began = run.started.astimezone().isoformat(sep=" ", timespec="seconds")
        table.add_row(began, short_id_of_non_memory(run.id), run.state.replace("_", " "), summary_of_patrol_run(run))
    return table


def summary_of_patrol_run(run: PatrolRun) -> str:
    """The changes of all steps."""
    if run.report.get("interrupted"):
        return "interrupted; the finished steps were kept"
    if decided := run.report.get("decided"):
        return f"applied {count_applied_decisions(decided)} decisions of an agent"
    steps = [step for step in run.report.get("steps", ()) if step["name"] != "age"]
    parts = [f"{step['name']}: {text}" for step in steps if (text := nonzero_counts_as_text(step, if_empty=""))]
    return terminal_safe_line("; ".join(parts)) or "nothing"
