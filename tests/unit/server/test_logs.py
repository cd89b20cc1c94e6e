"""No memory's text gets into the log, at whatever level, whatever fails (ruling 11)."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from madeleine.memory.errors import KeyConflict, StorageFull
from madeleine.server.logs import LOG_FORMAT, TracebackRedactingFormatter
from tests.e2e.serving import ROOT, call_tool, connected
from tests.rows import for_each_row
from tests.waiting import DEADLOCK_S

SECRET = "Zoé buried the xylophoniser"


def logged(error: BaseException) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TracebackRedactingFormatter(LOG_FORMAT))
    logger = logging.Logger("tests")
    logger.addHandler(handler)
    try:
        fail(error)
    except BaseException:
        logger.exception("failed")
    return stream.getvalue()


def fail(error: BaseException) -> None:
    raise error


def fail_because_of(cause: Exception, error: Exception) -> None:
    try:
        fail(cause)
    except Exception as before:
        raise error from before


@for_each_row(
    "error",
    [
        ValueError(SECRET),
        KeyError(SECRET),
        KeyConflict(SECRET),
        AssertionError(SECRET),
        ExceptionGroup(SECRET, [KeyError(SECRET)]),
    ],
)
def test_an_error_that_may_quote_somebody_is_named_but_not_quoted(error: BaseException) -> None:
    text = logged(error)
    assert SECRET not in text
    assert type(error).__name__ in text
    assert "in logged" in text


def test_an_error_of_our_own_speaks_and_what_led_to_it_is_named() -> None:
    full = StorageFull("The disk is full.")
    with pytest.raises(StorageFull):
        fail_because_of(KeyError(SECRET), full)
    text = logged(full)
    assert "StorageFull: The disk is full." in text
    assert "builtins.KeyError" in text
    assert SECRET not in text


@pytest.mark.slow
def test_at_the_level_debug_a_server_logs_no_text_that_it_is_given(tmp_path: Path) -> None:
    """The database driver logs every value at that level."""
    script = (
        f"import asyncio\nfrom tests.unit.server.test_logs import converse\nasyncio.run(converse({str(tmp_path)!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=DEADLOCK_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert " INFO madeleine.patrol." in done.stderr  # it does log
    assert "xylophoniser" not in done.stderr


async def converse(data_dir: str) -> None:
    """In a process of its own, whose standard error the server has too."""
    async with connected(Path(data_dir), more={"MADELEINE_LOG_LEVEL": "debug"}) as client:
        stored = await call_tool(client, "store", text=SECRET, key="xylophoniser")
        await client.call_tool("store", {"text": "another xylophoniser", "key": "xylophoniser"})
        await call_tool(client, "recall", query="xylophoniser")
        await call_tool(client, "search_memory", query="xylophoniser")
        await call_tool(client, "update_memory", id=stored["id"], text="the xylophoniser was found")
        await call_tool(client, "run_patrol")
        await call_tool(client, "forget", ids=[stored["id"]])


def test_a_log_line_holds_no_secret_and_nothing_that_a_terminal_obeys() -> None:
    record = logging.makeLogRecord({"msg": "GET %s", "args": ("/mcp?\x1b[2J\u202etoken=" + "a1b2c3d4e5f6a7b8",)})
    assert TracebackRedactingFormatter().format(record) == "GET /mcp?token=[redacted: token]"
