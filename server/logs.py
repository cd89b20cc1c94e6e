"""The log. It holds no text of a memory, neither from libraries that log their input nor from errors that quote it."""

from __future__ import annotations

import logging
import sqlite3
import sys
import traceback
from pathlib import Path
from types import TracebackType

from madeleine.memory.errors import InvalidInput, KeyConflict, MadeleineError
from madeleine.memory.rules.storing.secrets import redact_secrets
from madeleine.memory.text.structure import text_without_invisible_chars

OWN_LOGGER_NAMES = ("madeleine",)
WARNINGS_ONLY_LOGGERS = ("mcp", "uvicorn", "httpx", "httpx2", "alembic", "anthropic", "openai")
"""Libraries that log at `info` what our own log covers, session ids included."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_ERRORS_QUOTING_INPUT = (InvalidInput, KeyConflict)
_ERRORS_WITH_LOGGABLE_MESSAGE = (
    MadeleineError,
    OSError,
    sqlite3.Error,
    ImportError,
    AttributeError,
    NameError,
    TypeError,
)
"""Errors whose message is known to hold no input, except those that quote."""

_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def start_logging(level: str, handler: logging.Handler | None = None, *, tracebacks: bool = True) -> None:
    """`handler`: standard error by default. `debug` applies to our own package: at that level the database driver logs
    every value. Without `tracebacks` an error is told by its type and place, but at `debug`."""
    handler = handler or logging.StreamHandler(sys.stderr)
    in_full = tracebacks or level.lower() == "debug"
    handler.setFormatter((TracebackRedactingFormatter if in_full else OneLineErrorPlaceFormatter)(LOG_FORMAT))
    handler.addFilter(_is_not_library_debug_record)
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(handlers=[handler], level=max(number, logging.INFO))
    for name in OWN_LOGGER_NAMES:
        logging.getLogger(name).setLevel(number)
    for name in WARNINGS_ONLY_LOGGERS:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))


def _is_not_library_debug_record(record: logging.LogRecord) -> bool:
    """Libraries that an environment variable sets to debug (`OPENAI_LOG=debug`) quote everything that they send."""
    return record.levelno >= logging.INFO or record.name.split(".")[0] in OWN_LOGGER_NAMES


class TracebackRedactingFormatter(logging.Formatter):
    """Lines without secrets and without signs that a terminal obeys. Tracebacks hold the place and type of an error;
    its message only where that cannot be somebody's text."""

    def format(self, record: logging.LogRecord) -> str:
        return text_without_invisible_chars(redact_secrets(super().format(record)).text)

    def formatException(self, ei: _ExceptionInfo) -> str:
        return "".join(_redacted_traceback(ei[1])).rstrip("\n") if ei[1] else ""


class OneLineErrorPlaceFormatter(TracebackRedactingFormatter):
    """Type and place of an error in one line."""

    def formatException(self, ei: _ExceptionInfo) -> str:
        error = ei[1]
        if error is None:
            return ""
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"({type(error).__name__}{place})"


def _redacted_traceback(error: BaseException) -> list[str]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    lines = [*_redacted_traceback(cause), "\nThen:\n\n"] if cause else []
    lines += ["Traceback (most recent call last):\n", *traceback.format_tb(error.__traceback__)]
    is_safe = isinstance(error, _ERRORS_WITH_LOGGABLE_MESSAGE) and not isinstance(error, _ERRORS_QUOTING_INPUT)
    lines.append(f"{type(error).__module__}.{type(error).__qualname__}{f': {error}' if is_safe else ''}\n")
    if isinstance(error, BaseExceptionGroup):
        for number, part in enumerate(error.exceptions, 1):
            lines += [f"\nPart {number}:\n\n", *_redacted_traceback(part)]
    return lines
