"""Input and output that commands share: files, JSON, terminals, progress, and their connection to the host."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from madeleine.memory.errors import InvalidInput
from madeleine.memory.text.structure import terminal_safe_line, text_without_invisible_chars
from madeleine.server.attach.client import ToolClient, open_host_client
from madeleine.server.settings.environment import (
    TOKEN_VARIABLE,
    URL_VARIABLE,
    read_environment_variables,
    setting_values_from_variables,
)
from madeleine.server.settings.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPED_CONSOLE_WIDTH_CHARS = 120
BYTES_SHARE_BETWEEN_PROGRESS_LINES = 0.1
"""Share of all bytes after which a line is printed, without a terminal."""
BYTES_BETWEEN_PROGRESS_LINES = 1_000_000
"""The same where the number of all bytes is not known."""

ShowByteProgress = Callable[[str, int, str], None]
"""(file, new bytes, state)."""


def read_text_file_or_stdin(file: str) -> str:
    """Of a file in UTF-8, or of standard input for "-". Raises `InvalidInput`."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error


def absolute_path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def print_json(content: object) -> None:
    print(text_without_invisible_chars(json.dumps(content, ensure_ascii=False, indent=2)))


def redacted_secrets_sentence(counts: Mapping[str, int]) -> str:
    return f"Redacted: {', '.join(f'{count} {kind}' for kind, count in counts.items())}." if counts else ""


def make_console(file: IO[str] | None = None) -> Console:
    """On standard output by default."""
    from rich.console import Console

    file = file or sys.stdout
    return Console(file=file, highlight=False, markup=False, width=None if file.isatty() else PIPED_CONSOLE_WIDTH_CHARS)


def empty_table_with_headings(*headings: str, no_wrap: Collection[str] = ()) -> Table:
    """Columns with no lines between them, for a person and for a program that reads what is piped. Long texts are
    folded, except in the columns of `no_wrap`."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in no_wrap)
    return table


@contextmanager
def show_spinner(text: str) -> Iterator[None]:
    """A spinner on standard error while something takes its time; nothing where there is no terminal."""
    out = make_console(sys.stderr)
    if not out.is_terminal:
        yield
        return
    with out.status(text):
        yield


@contextmanager
def show_byte_progress(total: int) -> Iterator[ShowByteProgress]:
    """Progress of reading files, on standard error: a bar, or a line now and then where there is no terminal. `total`:
    bytes of all files, 0 if not known."""
    from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    out = make_console(sys.stderr)
    printed_bytes = 0.0
    texts = [TextColumn(field, markup=False) for field in ("{task.description}", "{task.fields[state]}")]
    columns = (SpinnerColumn(), texts[0], BarColumn(), TaskProgressColumn(), DownloadColumn(), texts[1])
    with Progress(*columns, console=out, disable=not out.is_terminal) as bar:
        task = bar.add_task("opening the memory", total=total or None, state="")

        def show(file: str, new_bytes: int, state: str) -> None:
            nonlocal printed_bytes
            bar.update(task, advance=new_bytes, description=terminal_safe_line(file), state=state)
            done = bar.tasks[0].completed
            if not out.is_terminal and done - printed_bytes >= (
                total * BYTES_SHARE_BETWEEN_PROGRESS_LINES or BYTES_BETWEEN_PROGRESS_LINES
            ):
                printed_bytes = done
                share = f"{done / total:.0%}" if total else f"{done / 1e6:.0f} MB"
                out.print(f"{share} {terminal_safe_line(file)}: {state}", soft_wrap=True)

        yield show


def open_tool_client(
    settings: Settings, tool: str, *, command: str, lost_hint: str, read_only: bool = False
) -> AbstractAsyncContextManager[ToolClient]:
    """Connect to the server of `MADELEINE_URL`, else to the host as a client with one tool, which may only read where
    `read_only`. Raises `ServerUnavailable`; `lost_hint` as in `ConnectionToHost`."""
    variables = read_environment_variables()
    if url := variables.get(URL_VARIABLE):
        from madeleine.server.attach.http_client import open_http_tool_client

        return open_http_tool_client(url, variables.get(TOKEN_VARIABLE, ""), command)
    own = client_settings_for_one_tool(tool) | ({"read_only": "true"} if read_only else {})
    return open_host_client(settings.data_dir, variables, own, command, lost_hint=lost_hint)


def client_settings_for_one_tool(tool: str) -> dict[str, str]:
    """The settings that a client brings to its host, for a client that needs one tool."""
    variables = setting_values_from_variables(read_environment_variables())
    return {name: value for name, value in variables.items() if name not in ("data_dir", "toolsets")} | {"tools": tool}
