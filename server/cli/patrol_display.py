"""Patrols for the person at a terminal: progress, reports, runs. Where nobody sees colours, plain lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from madeleine.memory.patrol_records import PatrolRun
from madeleine.server.cli.output import printable

Tell = Callable[[float, float, str], None]
"""(done, total, message)."""


@contextmanager
def progress_on(out: Console) -> Iterator[Tell]:
    """A bar with a spinner; a line for each piece of news where there is no terminal."""
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
def live_news(out: Console) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A bar while a patrol is under way, and its report at the end. For news as `patrol_events.as_json` writes it."""
    with ExitStack() as under_way:
        tell: Tell | None = None

        def show(news: Mapping[str, Any]) -> None:
            nonlocal tell
            if news["event"] in ("begins", "progress") and tell is None:
                tell = under_way.enter_context(progress_on(out))
            if news["event"] == "begins":
                out.print(f"Patrol {printable(news['run_id'])} begins")
            elif news["event"] == "progress" and tell is not None:
                tell(*progress_of(news))
            elif news["event"] in ("ends", "fails"):
                under_way.close()
                tell = None
                if news["event"] == "fails":
                    out.print(f"Patrol {printable(news['run_id'])} did not come to its end and was rolled back")
                elif "report" in news:
                    show_report(out, news["report"])

        yield show


def progress_of(news: Mapping[str, Any]) -> tuple[float, float, str]:
    """As `run_patrol` tells it."""
    parts = news.get("parts", 0)
    under_way = f": {news['part']} of {parts}" if parts else ""
    done = news["done"] + (news["part"] / parts if parts else 0)
    return done, news["total"], f"{news['step']} {news['name']}{under_way}"


def show_report(out: Console, report: Mapping[str, Any]) -> None:
    """As `PatrolReport.as_json` or `as_record` gives it."""
    if report["steps"]:
        title = "What a patrol would do" if report.get("dry_run") else f"Patrol {printable(report['run_id'])}"
        out.print(title, soft_wrap=True)
        out.print(report_table(report))
    if decided := report.get("decided"):
        out.print(f"{sum(not one.get('refused') for one in decided)} of {len(decided)} decisions were carried out")
    for line in closing_lines(report):
        out.print(line, soft_wrap=True)


def report_table(report: Mapping[str, Any]) -> Table:
    """As `PatrolReport.as_json` gives it."""
    table = Table()
    for heading in ("", "step", "what it did"):
        table.add_column(heading)
    for step in report["steps"]:
        did = Text(counted(step))
        if step.get("failed"):
            did = Text(f"failed: {printable(step['failed'])}", style="red")
        elif step.get("skipped"):
            did = Text("needs a language model", style="dim")
        for note in step.get("notes", ()):
            did.append(f"\n{printable(note)}")
        table.add_row(step["step"], step["name"], did)
    return table


def counted(step: Mapping[str, Any]) -> str:
    """Its counts in words; those that are 0 are left out."""
    counts = {name: count for name, count in step.items() if isinstance(count, int) and count}
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()) or "nothing"


def closing_lines(report: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    if waiting := len(report.get("pending", ())) + report.get("waiting", 0):
        what = "1 thing waits" if waiting == 1 else f"{waiting} things wait"
        found.append(f"{what} for a mind: an agent that calls run_patrol, or a language model, decides.")
    if spent := report.get("spent"):
        price = f", {spent['usd']:.4f} US dollars" if "usd" in spent else ""
        tokens = spent["input_tokens"] + spent["output_tokens"]
        found.append(f"The language model was asked {spent['calls']} times: {tokens:,} tokens{price}.")
    if not report.get("dry_run"):
        found.append(f"To put it back: madeleine patrol undo {printable(report['run_id'])}")
    return found


def runs_table(runs: Sequence[PatrolRun]) -> Table:
    table = Table()
    for heading in ("began", "run", "state", "what it did"):
        table.add_column(heading, no_wrap=heading != "what it did")
    for run in runs:
        began = run.started.astimezone().isoformat(sep=" ", timespec="seconds")
        table.add_row(began, run.id, run.state.replace("_", " "), in_few_words(run))
    return table


def in_few_words(run: PatrolRun) -> str:
    """What changed, of all steps together."""
    if run.report.get("interrupted"):
        return "interrupted, and kept as far as it went"
    if decided := run.report.get("decided"):
        return f"carried out {sum(not one.get('refused') for one in decided)} decisions of an agent"
    steps = [step for step in run.report.get("steps", ()) if step["name"] != "age"]
    parts = [f"{step['name']}: {counted(step)}" for step in steps if counted(step) != "nothing"]
    return printable("; ".join(parts)) or "nothing"
