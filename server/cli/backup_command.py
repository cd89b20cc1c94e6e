"""`madeleine backup` and `madeleine restore`: the whole memory as one file, and back."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from madeleine.memory.errors import InvalidInput, StorageBusy
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.moving.counts import describe_record_counts
from madeleine.memory.moving.ports import LedgerCopyFileRecord
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server import EXIT_FAILURE
from madeleine.server.attach.connector import stop_host
from madeleine.server.background.backups import make_audited_backup_and_count_rows, path_of_backup
from madeleine.server.background.index_origin import INDEX_FOLDERS, unused_folder_for_replaced_memory
from madeleine.server.background.index_place import BUILT_INDEX_LOCATION_SETTING
from madeleine.server.cli.output import absolute_path, print_json, show_spinner
from madeleine.server.counted import count_phrase
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import (
    LEDGER_FILE,
    ledger_path,
    lock_data_directory,
    open_ledger_without_index,
)
from madeleine.storage.sql.database.backup import (
    back_up_ledger,
    is_nonempty_file,
    is_undamaged_ledger_file,
    remove_ledger_file,
    replace_ledger_file,
    verify_ledger_file,
)
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from madeleine.storage.sql.moving.restoring import RESTORE_CLIENT_NAME, ReplacedToRestoredLedgerTransfer

RESTORE_DRAFT_FILE = f"{LEDGER_FILE}.restoring"
MAX_RESTORE_LOCK_ATTEMPTS = 20
"""Each ends a host that a client has started meanwhile."""
MAX_FORGOTTEN_IDS_PRINTED_PER_BEING = 20
SERVER_ENDED_FOR_RESTORE_MESSAGE = (
    "The process that served the memory has ended. Clients on this machine start the next one; "
    "`madeleine serve --http` has to be started again."
)


async def backup_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Raises `InvalidInput`, `StorageError`."""
    at = utc_now()
    target = absolute_path(arguments.file) if arguments.file else path_of_backup(settings, at)
    async with open_ledger_without_index(settings, create=False) as ledger:
        if target.exists():
            if target.samefile(ledger_path(settings)):
                raise InvalidInput(f"{target} is the memory itself. Give another name.")
            await asyncio.to_thread(verify_ledger_file, target)  # what is no backup is not overwritten
        with show_spinner("backing up"):
            counts = await make_audited_backup_and_count_rows(
                ledger_path(settings), target, ledger, client="madeleine backup", at=at
            )
    if arguments.json:
        print_json({"file": str(target), "counts": counts})
    else:
        print(f"Backed up to {target}, and verified: {describe_record_counts(counts)}.")


async def restore_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """Raises `InvalidInput` for a file that is no backup, `StorageBusy`, `StorageError`."""
    source = absolute_path(arguments.file)
    if not source.is_file():
        raise InvalidInput(f"{source} is no file. Give one that `madeleine backup` wrote.")
    if not (arguments.yes or sys.stdin.isatty()):
        raise InvalidInput("Nothing was changed: run `madeleine restore` with --yes, or in a terminal.")
    data_dir = settings.data_dir
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    await asyncio.to_thread(verify_ledger_file, source)
    draft = data_dir / RESTORE_DRAFT_FILE
    remove_ledger_file(draft)  # a killed restore's
    try:
        await asyncio.to_thread(back_up_ledger, source, draft)
        ledger = data_dir / LEDGER_FILE
        is_readable = is_nonempty_file(ledger) and await asyncio.to_thread(is_undamaged_ledger_file, ledger)
        await _print_forgotten_since_backup(ledger, draft, is_readable=is_readable)
        if not (arguments.yes or _ask_to_confirm_restore()):
            print("madeleine: nothing was changed", file=sys.stderr)
            return EXIT_FAILURE
        with _stop_host_and_lock_memory(data_dir):
            kept, counts = await _replace_ledger_by_restored_draft(data_dir, draft, is_readable=is_readable)
    finally:
        remove_ledger_file(draft)
    if not arguments.json:
        print(
            f"Restored from {source}: {describe_record_counts(counts)}."
            + (f" What was there is kept in {kept}." if kept else "")
        )
    with show_spinner("rebuilding the index"):
        indexed = await _rebuild_index_and_count_memories(settings)
    if arguments.json:
        print_json({"file": str(source), "counts": counts, "kept": str(kept or ""), "indexed": indexed})
    elif indexed is None:
        print("The process that has the memory open rebuilds the index.")
    else:
        print(f"The index was rebuilt: {count_phrase(indexed, 'memory', 'memories')}.")
    return 0


@contextmanager
def _stop_host_and_lock_memory(data_dir: Path) -> Iterator[None]:
    """Ends the process that serves the memory, and says so; clients that start the next one meanwhile are told that the
    memory is in use."""
    for attempt in range(MAX_RESTORE_LOCK_ATTEMPTS):
        if stop_host(data_dir) and not attempt:
            print(SERVER_ENDED_FOR_RESTORE_MESSAGE, file=sys.stderr)
        lock = lock_data_directory(data_dir)
        try:
            lock.__enter__()
        except StorageBusy:
            if attempt == MAX_RESTORE_LOCK_ATTEMPTS - 1:
                raise
            continue
        try:
            yield
        finally:
            lock.__exit__(None, None, None)
        return


@asynccontextmanager
async def _open_restored_ledger_and_transfer(
    ledger: Path, draft: Path, *, is_readable: bool
) -> AsyncIterator[tuple[LedgerRepositories, ReplacedToRestoredLedgerTransfer | None]]:
    """The restored ledger, and what to carry over if the ledger to be replaced is there and can be read."""
    async with AsyncExitStack() as stack:
        restored = await stack.enter_async_context(open_ledger(draft))
        if is_readable:
            yield (
                restored,
                ReplacedToRestoredLedgerTransfer(await stack.enter_async_context(open_ledger(ledger)), restored),
            )
        else:
            yield restored, None


async def _replace_ledger_by_restored_draft(
    data_dir: Path, draft: Path, *, is_readable: bool
) -> tuple[Path | None, dict[str, int]]:
    """The folder with what was replaced, and the counts of what is restored."""
    ledger, at = data_dir / LEDGER_FILE, utc_now()
    kept = unused_folder_for_replaced_memory(data_dir, f"{at:%Y-%m-%d}") if ledger.exists() else None
    async with _open_restored_ledger_and_transfer(ledger, draft, is_readable=is_readable) as (restored, carry_over):
        # An index that is beside it belongs to what is replaced.
        await restored.index_source.set_setting(BUILT_INDEX_LOCATION_SETTING, None)
        if carry_over:
            await carry_over.forget(await carry_over.ids_forgotten_since_backup_by_being(), at=at)
            await carry_over.copy_erasure_token_and_backup_records(at=at)
        await restored.audit.record_audit_event(Scope(BeingId(""), RESTORE_CLIENT_NAME), "restore", at=at)
        if kept:  # whoever forgets is told that it is there
            copy = LedgerCopyFileRecord(path=str(kept), kind="replaced", being_id=BeingId(""), made_at=at)
            await restored.copies.record_ledger_copy(copy)
    counts = await asyncio.to_thread(_consolidate_draft_into_one_file, draft)
    await asyncio.to_thread(replace_ledger_file, ledger, draft, kept, is_whole=is_readable)
    for folder in INDEX_FOLDERS:
        if kept and (index := data_dir / folder).exists():
            index.rename(kept / folder)
    return kept, counts


def _consolidate_draft_into_one_file(draft: Path) -> dict[str, int]:
    """All that was changed in it into the one file; its counts."""
    settled = draft.with_name(f"{draft.name}.settled")
    try:
        counts = back_up_ledger(draft, settled)
        remove_ledger_file(draft)
        settled.replace(draft)
    finally:
        remove_ledger_file(settled)
    return counts


async def _print_forgotten_since_backup(ledger: Path, draft: Path, *, is_readable: bool) -> None:
    async with _open_restored_ledger_and_transfer(ledger, draft, is_readable=is_readable) as (_, carry_over):
        held = await carry_over.ids_forgotten_since_backup_by_being() if carry_over else {}
    if not is_readable:
        reason = (
            "The memory here is damaged, and cannot tell" if is_nonempty_file(ledger) else "No memory is here to tell"
        )
        print(f"{reason} what was forgotten since the backup was made: forget it again.", file=sys.stderr)
    if held:
        print("Forgotten since the backup was made, which still holds it; it is not restored:", file=sys.stderr)
    for being, ids in held.items():
        more = (
            f" and {len(ids) - MAX_FORGOTTEN_IDS_PRINTED_PER_BEING} more"
            if len(ids) > MAX_FORGOTTEN_IDS_PRINTED_PER_BEING
            else ""
        )
        print(
            f"  {terminal_safe_line(being)}: {' '.join(ids[:MAX_FORGOTTEN_IDS_PRINTED_PER_BEING])}{more}",
            file=sys.stderr,
        )


def _ask_to_confirm_restore() -> bool:
    question = "Put the backup in the place of the memory, which is kept beside? [y/N] "
    return input(question).strip().lower() in ("y", "yes")


async def _rebuild_index_and_count_memories(settings: Settings) -> int | None:
    """The number of memories in it; None where another process has the memory open, and rebuilds it."""
    from madeleine.server.wiring.open_memory import open_memory_store

    try:
        async with open_memory_store(settings, rebuild=True, background=False) as memory:
            return await memory.index.count()
    except StorageBusy:
        return None
