"""What the memory thread has still to read, what it has spent, and what neither it nor a patrol could read: told by the
ledger alone, beside a running host or without one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.erased_bytes import DEFAULT_PROMISED_ERASURE_SECONDS
from madeleine.memory.watch.extraction import EXTRACTION_COST_PURPOSE
from madeleine.memory.watch.thread import MEMORY_EXTRACTOR_TOKEN_BUDGET_PERIOD
from madeleine.server.background.index_origin import require_ledger_file_if_index_exists
from madeleine.server.counted import count_phrase
from madeleine.server.settings.environment import (
    read_environment_variables,
    read_settings_file,
    setting_values_from_variables,
)
from madeleine.server.settings.settings import read_settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import LEDGER_FILE, ledger_location
from madeleine.storage.sql.database.opening import LedgerLocation
from madeleine.storage.sql.ledger import open_ledger


def read_ledger_status(data_dir: Path) -> dict[str, Any]:
    """Of all beings. `thread`: messages that are `unread`, `put_off` of these and `abandoned`, and the `tokens` of the
    last 24 hours; `unreadable_notes`: number of notes marked `[PARSE_FAILED]`; `erasure`: entries `pending` whose bytes
    are still on disk, and by when the first is to be gone (`promised_by`, a moment in ISO 8601, "" for none). Empty
    without a ledger. Raises `StorageError`."""
    if _is_ledger_in_postgres(data_dir):
        return asyncio.run(_read_status_of_ledger_at_location(ledger_location(read_settings())))
    path = data_dir / LEDGER_FILE
    require_ledger_file_if_index_exists(path)
    return asyncio.run(_read_status_of_ledger_at_location(path)) if path.exists() else {}


def _is_ledger_in_postgres(data_dir: Path) -> bool:
    """Without the settings, which take longer to read, and may be unusable."""
    if "database_url" in setting_values_from_variables(read_environment_variables()):
        return True
    with suppress(OSError, ValueError):
        return bool(read_settings_file(data_dir).get("database_url"))
    return False


async def _read_status_of_ledger_at_location(location: LedgerLocation) -> dict[str, Any]:
    async with open_ledger(location) as ledger:
        backlog = await ledger.conversations.unread_message_totals_across_beings()
        tokens = await ledger.patrols.tokens_spent_since(
            EXTRACTION_COST_PURPOSE, utc_now() - MEMORY_EXTRACTOR_TOKEN_BUDGET_PERIOD
        )
        erasure = await ledger.erasure.read_scrub_backlog()
        promised_by = erasure.since and (erasure.since + timedelta(seconds=_promised_erasure_seconds())).isoformat()
        return {
            "erasure": {"pending": erasure.pending, "promised_by": promised_by or ""},
            "thread": asdict(backlog) | {"tokens": tokens},
            "unreadable_notes": await ledger.context.count_unreadable_notes(),
        }


def _promised_erasure_seconds() -> float:
    with suppress(InvalidInput):
        return read_settings().erasure_seconds
    return DEFAULT_PROMISED_ERASURE_SECONDS


def memory_extraction_status_of_next_host() -> dict[str, Any]:
    """As a host tells it: by the settings here, which the next one begins with. Empty where they cannot be used."""
    with suppress(InvalidInput):
        return {"memory_thread": read_settings().memory_extraction_enablement._asdict()}
    return {}


def ledger_status_lines(status: dict[str, Any]) -> Iterator[str]:
    """`status`: of the host and of the ledger."""
    if state := status.get("memory_thread"):
        yield f"Memory thread: {'on' if state['on'] else 'off'}, as {state['reason']}."
    if counts := status.get("thread"):
        yield (
            f"Memory thread: {count_phrase(counts['unread'], 'message')} unread ({counts['put_off']} of them put off "
            f"until more is said), {counts['abandoned']} abandoned after failures, {counts['tokens']:,} "
            "tokens in 24 hours."
        )
    if (erasure := status.get("erasure")) and erasure["pending"]:
        promised_by = datetime.fromisoformat(erasure["promised_by"])
        if "pid" not in status:
            remark = " No process serves the memory: the next one does it first."
        else:
            remark = " That time has passed: the log says what hinders it." if promised_by < utc_now() else ""
        yield (
            f"Forgotten: {count_phrase(erasure['pending'], 'entry', 'entries')} in no answer any more, and gone from "
            f"the disk by {promised_by.astimezone():%Y-%m-%d %H:%M:%S}.{remark}"
        )
    if notes := status.get("unreadable_notes"):
        yield (
            f"Notes: {notes} could not be read. Each stands among the open notes of its being with the reason, and a "
            "patrol offers it to be told anew."
        )
