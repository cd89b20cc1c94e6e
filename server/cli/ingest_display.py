"""Progress and summary of `madeleine ingest`: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from madeleine.server.cli.output import console, printable, redaction_note

Display = Callable[[str, int, Mapping[str, int]], None]
"""(file, new bytes, counts so far)."""
LINE_SHARE = 0.1
"""Share of all bytes after which a line is printed, without a terminal."""
LINE_BYTES = 1_000_000
"""The same where the number of all bytes is not known."""
WORDS = {
    "stored": "stored", "reinforced": "known already and reinforced", "dropped": "not worth keeping",
    "already": "ingested before",
}  # fmt: skip


@contextmanager
def display(total: int) -> Iterator[Display]:
    """`total`: bytes of all files, 0 if not known."""
    out = console(sys.stderr)
    done = printed = 0
    if not out.is_terminal:

        def print_line(file: str, new: int, counts: Mapping[str, int]) -> None:
            nonlocal done, printed
            done += new
            if done - printed >= (total * LINE_SHARE or LINE_BYTES):
                printed = done
                share = f"{done / total:.0%}" if total else f"{done / 1e6:.0f} MB"
                out.print(f"{share} {printable(file)}: {counted(counts)}", soft_wrap=True)

        yield print_line
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), DownloadColumn(),
        TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[counts]}"),
    )  # fmt: skip
    with Progress(*columns, console=out) as bar:
        task = bar.add_task("opening the memory", total=total or None, counts="")

        def show(file: str, new: int, counts: Mapping[str, int]) -> None:
            bar.update(task, advance=new, description=printable(file), counts=f"{counts['stored']} stored")

        yield show


def counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]} {words}" for name, words in WORDS.items() if counts.get(name)) or "nothing"


def summary(report: Mapping[str, Any]) -> str:
    """As `FileReport.as_json` gives it."""
    lines = [f"{printable(report['file'])}: {counted(report)}."]
    if without_text := report.get("without_text"):
        lines.append(f"  Lines without a text: {without_text}.")
    if redacted := report.get("redacted"):
        lines.append(f"  {redaction_note(redacted)}")
    if notice := report.get("notice"):
        lines.append(f"  {printable(notice)}")
    return "\n".join(lines)
