"""Progress of commands that read files: a bar on a terminal, else a line now and then, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

from madeleine.server.cli.output import console, printable

ShowProgress = Callable[[str, int, str], None]
"""(file, new bytes, state)."""
LINE_SHARE = 0.1
"""Share of all bytes after which a line is printed, without a terminal."""
LINE_BYTES = 1_000_000
"""The same where the number of all bytes is not known."""


@contextmanager
def byte_progress(total: int) -> Iterator[ShowProgress]:
    """`total`: bytes of all files, 0 if not known."""
    out = console(sys.stderr)
    done = printed = 0
    if not out.is_terminal:

        def print_line(file: str, new: int, state: str) -> None:
            nonlocal done, printed
            done += new
            if done - printed >= (total * LINE_SHARE or LINE_BYTES):
                printed = done
                share = f"{done / total:.0%}" if total else f"{done / 1e6:.0f} MB"
                out.print(f"{share} {printable(file)}: {state}", soft_wrap=True)

        yield print_line
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), DownloadColumn(),
        TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[state]}"),
    )  # fmt: skip
    with Progress(*columns, console=out) as bar:
        task = bar.add_task("opening the memory", total=total or None, state="")

        def update_bar(file: str, new: int, state: str) -> None:
            bar.update(task, advance=new, description=printable(file), state=state)

        yield update_bar
