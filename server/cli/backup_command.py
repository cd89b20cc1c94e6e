"""`madeleine backup` and `madeleine restore`: the whole memory as one file, and back."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from madeleine.memory.errors import InvalidInput, StorageBusy
from madeleine.memory.model import BeingId, MemoryId
from madeleine.memory.text.structure import visible_line
from madeleine.server import EXIT_FAILURE
from madeleine.server.attach.connector import stop_host
from madeleine.server.background.backups import make_backup, path_of_backup
from madeleine.server.background.index_origin import INDEX_FOLDER, new_folder_beside
from madeleine.server.background.index_upkeep import BUILT_INDEX_LOCATION_SETTING
from madeleine.server.cli.output import absolute_path
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import (
    LEDGER_FILE,
    ledger_path,
    lock_data_directory,
    open_ledger_without_index,
)
from madeleine.storage.sql.ledger import open_ledger
from madeleine.storage.sql.moving.backup import (
    back_up_ledger,
    remove_ledger_file,
    replace_ledger,
    total_of,
    verify_ledger_file,
)
from madeleine.storage.sql.moving.restoring import LedgerHandover

RESTORING_FILE = f"{LEDGER_FILE}.restoring"
MAX_LOCK_ATTEMPTS = 20
"""Each ends a host that a client has started meanwhile."""
MAX_NAMED_IDS = 20


async def backup_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Raises `InvalidInput`, `StorageError`."""
    at = utc_now()
    target = absolute_path(arguments.file) if arguments.file else path_of_backup(settings, at)
    async with open_ledger_without_index(settings, create=False) as ledger:
        if target.exists():
            if target.samefile(ledger_path(settings)):
                raise InvalidInput(f"{target} is the memory itself. Give another name.")
            await asyncio.to_thread(verify_ledger_file, target)  # what is no backup is not overwritten
        counts = await make_backup(ledger_path(settings), target, ledger.copies, at=at)
    print(f"Backed up to {target}, and verified: {total_of(counts)}.")


async def restore_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """Raises `InvalidInput` for a file that is no backup, `StorageBusy`, `StorageError`."""
    source = absolute_path(arguments.file)
    if not source.is_file():
        raise InvalidInput(f"{source} is no file. Give one that `madeleine backup` wrote.")
    data_dir = settings.data_dir
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    counts = await asyncio.to_thread(verify_ledger_file, source)
    draft = data_dir / RESTORING_FILE
    try:
        await asyncio.to_thread(back_up_ledger, source, draft)
        with _memory_for_itself(data_dir):
            kept = await _restore(data_dir, draft, arguments)
    finally:
        remove_ledger_file(draft)
    if kept is None:
        print("madeleine: nothing was changed", file=sys.stderr)
        return EXIT_FAILURE
    print(f"Restored from {source}: {total_of(counts)}." + (f" What was there is kept in {kept}." if kept.name else ""))
    await _rebuild_index(settings)
    return 0


@contextmanager
def _memory_for_itself(data_dir: Path) -> Iterator[None]:
    """Ends the host; clients that start the next one meanwhile are told that the memory is in use."""
    for attempt in range(MAX_LOCK_ATTEMPTS):
        stop_host(data_dir)
        lock = lock_data_directory(data_dir)
        try:
            lock.__enter__()
        except StorageBusy:
            if attempt == MAX_LOCK_ATTEMPTS - 1:
                raise
            continue
        try:
            yield
        finally:
            lock.__exit__(None, None, None)
        return


async def _restore(data_dir: Path, draft: Path, arguments: argparse.Namespace) -> Path | None:
    """The folder with what was replaced, an empty path if there was nothing; None if the person does not want it."""
    ledger = data_dir / LEDGER_FILE
    at = utc_now()
    async with AsyncExitStack() as stack:
        restored = await stack.enter_async_context(open_ledger(draft))
        # An index that is beside it belongs to what is replaced.
        await restored.index_source.set_setting(BUILT_INDEX_LOCATION_SETTING, None)
        if ledger.exists() and ledger.stat().st_size:
            replaced = await stack.enter_async_context(open_ledger(ledger))
            handover = LedgerHandover(replaced, restored)
            held = await handover.forgotten_since()
            _print_forgotten(held)
            if not _is_confirmed(arguments):
                return None
            await handover.forget(held, at=at)
            await handover.take_over(at=at)
        else:
            print(
                "No memory is here that could tell what was forgotten since the backup was made: forget it again.",
                file=sys.stderr,
            )
            if not _is_confirmed(arguments):
                return None
    await asyncio.to_thread(_settle, draft)
    kept = new_folder_beside(data_dir, f"{at:%Y-%m-%d}") if ledger.exists() else Path()
    await asyncio.to_thread(replace_ledger, ledger, draft, kept)
    if kept.name and (index := data_dir / INDEX_FOLDER).exists():
        index.rename(kept / INDEX_FOLDER)
    return kept


def _settle(draft: Path) -> None:
    """All that was changed in it into the one file."""
    settled = draft.with_name(f"{draft.name}.settled")
    back_up_ledger(draft, settled)
    remove_ledger_file(draft)
    settled.replace(draft)


def _print_forgotten(held: Mapping[BeingId, Sequence[MemoryId]]) -> None:
    if not held:
        return
    print("Forgotten since this backup was made, in which it still is; erased from what is restored:", file=sys.stderr)
    for being, ids in held.items():
        more = f" and {len(ids) - MAX_NAMED_IDS} more" if len(ids) > MAX_NAMED_IDS else ""
        print(f"  {visible_line(being)}: {' '.join(ids[:MAX_NAMED_IDS])}{more}", file=sys.stderr)


def _is_confirmed(arguments: argparse.Namespace) -> bool:
    """Raises `InvalidInput` where nobody can be asked."""
    if arguments.yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidInput("Nothing was changed: run `madeleine restore` with --yes, or in a terminal.")
    return input("Put the backup in the place of the memory, which is kept beside? [y/N] ").strip().lower() in (
        "y",
        "yes",
    )


async def _rebuild_index(settings: Settings) -> None:
    from madeleine.server.wiring.open_memory import open_memory

    try:
        async with open_memory(settings, rebuild=True, background=False) as memory:
            print(f"The index was rebuilt: {await memory.index.count()} memories.")
    except StorageBusy:
        print("The process that has the memory open rebuilds the index.")
