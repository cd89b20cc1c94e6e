"""The log. No memory's text gets into it: not from libraries that log what they are given, and not
from errors that quote it."""

from __future__ import annotations

import logging
import sqlite3
import sys
import traceback
from types import TracebackType

from madeleine.memory.errors import InvalidInput, KeyConflict, MadeleineError

OURS = ("madeleine",)
TALKATIVE = ("mcp", "uvicorn", "httpx", "httpx2", "alembic", "anthropic", "openai")
"""Libraries that tell at `info` what is our own log's to tell, session ids among it."""
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_QUOTING = (InvalidInput, KeyConflict)
_SPEAKING = (MadeleineError, OSError, sqlite3.Error, ImportError, AttributeError, NameError, TypeError)
"""Errors whose message is known to hold no values that somebody gave, but for those that quote."""

_Info = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def start_logging(level: str, handler: logging.Handler | None = None) -> None:
    """`handler`: standard error by default. `debug` is for our own packages: at that level the database driver logs
    every value that it is given."""
    handler = handler or logging.StreamHandler(sys.stderr)
    handler.setFormatter(DiscreetFormatter(FORMAT))
    handler.addFilter(_no_debugging_of_others)
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(handlers=[handler], level=max(number, logging.INFO))
    for name in OURS:
        logging.getLogger(name).setLevel(number)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))


def _no_debugging_of_others(record: logging.LogRecord) -> bool:
    """Libraries that a variable of the environment makes talk (`OPENAI_LOG=debug`) quote all that they send."""
    return record.levelno >= logging.INFO or record.name.split(".")[0] in OURS


class DiscreetFormatter(logging.Formatter):
    """Tracebacks say where, and what kind of error; what it says only where that cannot be somebody's text."""

    def formatException(self, ei: _Info) -> str:
        return "".join(_told(ei[1])).rstrip("\n") if ei[1] else ""


def _told(error: BaseException) -> list[str]:
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    lines = [*_told(before), "\nThen:\n\n"] if before else []
    lines += ["Traceback (most recent call last):\n", *traceback.format_tb(error.__traceback__)]
    speaks = isinstance(error, _SPEAKING) and not isinstance(error, _QUOTING)
    lines.append(f"{type(error).__module__}.{type(error).__qualname__}{f': {error}' if speaks else ''}\n")
    if isinstance(error, BaseExceptionGroup):
        for number, part in enumerate(error.exceptions, 1):
            lines += [f"\nPart {number}:\n\n", *_told(part)]
    return lines
