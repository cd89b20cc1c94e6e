"""Pouring in, for the person at a terminal: a bar; where nobody sees it, a line now and then."""

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

from madeleine.server.cli.patrol_display import console, printable

Display = Callable[[str, int, Mapping[str, int]], None]
"""(file, bytes more, counts so far)."""
EVERY = 0.1
"""Of all bytes: so often a line is printed where there is no terminal."""
EVERY_BYTES = 1_000_000
"""The same where nobody knows how many there are."""
WORDS = {
    "stored": "stored", "reinforced": "known already and reinforced", "dropped": "not worth keeping",
    "already": "poured in before",
}  # fmt: skip


@contextmanager
def display(total: int) -> Iterator[Display]:
    """`total`: bytes of all files, 0 if nobody knows."""
    out = console(sys.stderr)
    done = printed = 0
    if not out.is_terminal:

        def tell(file: str, more: int, counts: Mapping[str, int]) -> None:
            nonlocal done, printed
            done += more
            if done - printed >= (total * EVERY or EVERY_BYTES):
                printed = done
                how_far = f"{done / total:.0%}" if total else f"{done / 1e6:.0f} MB"
                out.print(f"{how_far} {printable(file)}: {counted(counts)}", soft_wrap=True)

        yield tell
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), DownloadColumn(),
        TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[counts]}"),
    )  # fmt: skip
    with Progress(*columns, console=out) as bar:
        task = bar.add_task("the memory opens", total=total or None, counts="")

        def show(file: str, more: int, counts: Mapping[str, int]) -> None:
            bar.update(task, advance=more, description=printable(file), counts=f"{counts['stored']} stored")

        yield show


def counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]} {words}" for name, words in WORDS.items() if counts.get(name)) or "nothing"


def summary(tally: Mapping[str, Any]) -> str:
    """As `Tally.as_json` gives it."""
    lines = [f"{printable(tally['file'])}: {counted(tally)}."]
    if silent := tally.get("without_text"):
        lines.append(f"  Lines without a text: {silent}.")
    if found := tally.get("redacted"):
        lines.append(f"  Redacted: {', '.join(f'{count} {kind}' for kind, count in found.items())}.")
    if notice := tally.get("notice"):
        lines.append(f"  {printable(notice)}")
    return "\n".join(lines)
