"""Whatever happens to a command, its user reads a sentence and no traceback."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

from madeleine import operating_system
from madeleine.memory.text.structure import text_without_invisible_chars
from madeleine.server import EXIT_FAILURE

MAX_SHOWN_ERROR_CHARS = 4_000
DEBUG_HINT = "MADELEINE_LOG_LEVEL=debug shows where; please report it."


def make_output_streams_error_tolerant() -> None:
    """A character that the terminal has no sign for is escaped, and a stream that was closed swallows what it gets."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _null_stream())
        elif hasattr(stream, "reconfigure"):
            encoding = None if stream.isatty() else operating_system.encoding_of_pipes()
            stream.reconfigure(errors="backslashreplace", encoding=encoding)


def flush_output() -> None:
    """Raises `OSError` where what was printed cannot be written, which would else be noticed too late."""
    sys.stdout.flush()


def report_unexpected_error(error: Exception, *, debug: bool) -> int:
    """Print what failed, and return the exit code."""
    if isinstance(error, BrokenPipeError):  # a reader that has seen enough, as `head`
        redirect_stdout_to_devnull()
        return EXIT_FAILURE
    if isinstance(error, OSError) and error.strerror:
        of_file = f": {error.filename}" if error.filename else ""
        print_error(f"{error.strerror}{of_file}.")
        redirect_stdout_to_devnull()
    elif debug:
        import traceback

        traceback.print_exception(error)
    else:
        print_error(f"the command failed unexpectedly ({type(error).__name__}). {DEBUG_HINT}")
    return EXIT_FAILURE


def print_error(message: str) -> None:
    if len(message) > MAX_SHOWN_ERROR_CHARS:
        message = message[: MAX_SHOWN_ERROR_CHARS - 1] + "…"
    try:
        print(f"madeleine: {text_without_invisible_chars(message)}", file=sys.stderr)
    except (OSError, ValueError):  # nobody can be told
        sys.stderr = _null_stream()


def redirect_stdout_to_devnull() -> None:
    """What is still in the buffer of standard output is not tried again when the process ends."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        sys.stdout = _null_stream()


def _null_stream() -> TextIO:
    """Stays open as long as the process lives."""
    return Path(os.devnull).open("w", encoding="utf-8")
