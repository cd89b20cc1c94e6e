"""Output of `madeleine patrol`: progress, reports, runs. Plain lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from madeleine.memory.patrol_records import PatrolRun
from madeleine.patrol.report import PatrolProgress
from madeleine.server.cli.output import printable

ShowProgress = Callable[[float, float, str], None]
"""(done, total, message)."""


@contextmanager
def progress_on(out: Console) -> Iterator[ShowProgress]:
    """A progress bar; a line for each call where there is no terminal."""
    if not out.is_terminal:
        yield lambda done, total, message: out.print(f"{done:g} of {total:g} {printable(message)}".rstrip())
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("the patrol begins", total=None)
        yield lambda done, total, message: bar.update(task, completed=done, total=total, description=printable(message))


@contextmanager
def event_display(out: Console) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Shows events as `patrol_events.as_json` writes them: a progress bar while a patrol runs, then its report."""
    with ExitStack() as running:
        show_progress: ShowProgress | None = None

        def show(event: Mapping[str, Any]) -> None:
            nonlocal show_progress
            if event["event"] in ("ends", "fails"):
                running.close()
                show_progress = None
            elif show_progress is None:
                show_progress = running.enter_context(progress_on(out))
            if event["event"] == "begins":
                out.print(f"Patrol {printable(event['run_id'])} begins")
            elif event["event"] == "fails":
                out.print(f"Patrol {printable(event['run_id'])} failed and was rolled back")
            elif event["event"] == "progress" and show_progress:
                names = ("name", "done", "total", "part", "parts")
                progress = PatrolProgress(*(event.get(name, 0) for name in names))
                show_progress(progress.steps_done, progress.total, progress.message)
            elif "report" in event:
                show_report(out, event["report"])

        yield show


def show_report(out: Console, report: Mapping[str, Any]) -> None:
    """As `PatrolReport.as_json` or `as_record` gives it."""
    if report["steps"]:
        title = "What a patrol would do" if report.get("dry_run") else f"Patrol {printable(report['run_id'])}"
        out.print(title, soft_wrap=True)
        out.print(report_table(report))
    if decided := report.get("decided"):
        out.print(f"{_applied(decided)} of {len(decided)} decisions were applied")
    for line in closing_lines(report):
        out.print(line, soft_wrap=True)


def report_table(report: Mapping[str, Any]) -> Table:
    table = Table("", "step", "result")
    for step in report["steps"]:
        result = Text(counts_text(step))
        if step.get("failed"):
            result = Text(f"failed: {printable(step['failed'])}", style="red")
        elif step.get("skipped"):
            result = Text("needs a language model", style="dim")
        for note in step.get("notes", ()):
            result.append(f"\n{printable(note)}")
        table.add_row(step["step"], step["name"], result)
    return table


def counts_text(step: Mapping[str, Any]) -> str:
    """A step's counts other than 0."""
    counts = {name: count for name, count in step.items() if isinstance(count, int) and count}
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()) or "nothing"


def closing_lines(report: Mapping[str, Any]) -> Iterator[str]:
    if pending := len(report.get("pending", ())) + report.get("waiting", 0):
        decisions = "1 decision" if pending == 1 else f"{pending} decisions"
        yield f"{decisions} pending, for an agent that calls run_patrol, or for a language model."
    if spent := report.get("spent"):
        price = f", {spent['usd']:.4f} US dollars" if "usd" in spent else ""
        tokens = spent["input_tokens"] + spent["output_tokens"]
        yield f"{spent['calls']} language model calls: {tokens:,} tokens{price}."
    if not report.get("dry_run"):
        yield f"To undo it: madeleine patrol undo {printable(report['run_id'])}"


def runs_table(runs: Sequence[PatrolRun]) -> Table:
    table = Table(*(Column(name, no_wrap=name != "result") for name in ("began", "run", "state", "result")))
    for run in runs:
        began = run.started.astimezone().isoformat(sep=" ", timespec="seconds")
        table.add_row(began, run.id, run.state.replace("_", " "), run_summary(run))
    return table


def run_summary(run: PatrolRun) -> str:
    """The changes of all steps."""
    if run.report.get("interrupted"):
        return "interrupted; the finished steps were kept"
    if decided := run.report.get("decided"):
        return f"applied {_applied(decided)} decisions of an agent"
    steps = [step for step in run.report.get("steps", ()) if step["name"] != "age"]
    parts = [f"{step['name']}: {text}" for step in steps if (text := counts_text(step)) != "nothing"]
    return printable("; ".join(parts)) or "nothing"


def _applied(decided: Sequence[Mapping[str, Any]]) -> int:
    return sum(not result.get("refused") for result in decided)
