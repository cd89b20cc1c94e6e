"""SIGKILL while a file is imported, and at every step of a restore: the old memory or the new one, whole."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from madeleine.storage.sql.database.backup import back_up_ledger
from madeleine.storage.sql.ledger import open_ledger
from tests.contracts.ledger.ledger_values import ADA, batch, memory
from tests.e2e.hosting import madeleine, no_host_left
from tests.e2e.serving import ROOT
from tests.household import new_store
from tests.moving_values import file_of, imported
from tests.properties.test_moving import many_records
from tests.waiting import DEADLOCK_S

pytestmark = pytest.mark.slow

IMPORT = """
import asyncio, os, signal, sys
from pathlib import Path
from madeleine.memory.moving.export_file import ExportFileReader
from madeleine.storage.sql.ledger import open_ledger
from tests.moving_values import NOW

def records(reader, kill_at):
    for number, record in enumerate(reader.records(), start=1):
        if number == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        yield record

async def main(path, file, kill_at):
    reader = ExportFileReader("e", iter(Path(file).read_bytes().splitlines(keepends=True)))
    async with open_ledger(Path(path)) as ledger:
        await ledger.imports.import_records(
            reader.header, records(reader, int(kill_at)), source="e", client="tests", at=NOW, dry_run=False
        )

asyncio.run(main(*sys.argv[1:]))
"""
RESTORE = """
import os, shutil, signal, sys
from pathlib import Path
from madeleine.server.cli import backup_command
from madeleine.server.cli.main import main

passed = 0

def around(owner, name):
    original = getattr(owner, name)
    def reach(*arguments, **named):
        global passed
        passed += 1
        if passed == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)
    setattr(owner, name, reach)

original = backup_command.replace_ledger_file

def replace_ledger_file(*arguments, **named):
    for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink"), (Path, "mkdir"), (shutil, "copyfile")):
        around(owner, name)
    original(*arguments, **named)
    os._exit(0)

backup_command.replace_ledger_file = replace_ledger_file
main(["restore", "--yes", sys.argv[2]])
"""


def run(script: str, *words: str, data_dir: Path | None = None) -> subprocess.CompletedProcess[str]:
    from tests.e2e.serving import environment

    return subprocess.run(
        [sys.executable, "-c", script, *words],
        env=environment(data_dir or ROOT), cwd=ROOT, capture_output=True, text=True, timeout=DEADLOCK_S, check=False,
    )  # fmt: skip


def texts(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {row[0] for row in connection.execute("SELECT action FROM memories")}


@pytest.mark.parametrize("kill_at", [2, 700, 1_201])
async def test_a_killed_import_leaves_nothing_and_the_next_one_is_whole(
    tmp_path: Path, templates: Path, kill_at: int
) -> None:
    path, file = new_store(templates, tmp_path / "memory.db"), tmp_path / "e.jsonl"
    file.write_bytes(b"".join(lines := file_of(many_records(1_200))))
    assert run(IMPORT, str(path), str(file), str(kill_at)).returncode == -signal.SIGKILL
    assert texts(path) == set()
    async with open_ledger(path) as ledger:
        assert (await imported(ledger, lines)).added["memory"] == 1_200


async def make_stores(tmp_path: Path, templates: Path) -> tuple[Path, Path]:
    """A data directory with `new`, and a backup with `old`."""
    data, backup = tmp_path / "data", tmp_path / "backup.db"
    data.mkdir(mode=0o700)
    async with open_ledger(new_store(templates, tmp_path / "old.db")) as ledger:
        await ledger.memories.commit_store_batch(ADA, batch(memory("old")))
    back_up_ledger(tmp_path / "old.db", backup)
    async with open_ledger(new_store(templates, data / "memory.db")) as ledger:
        await ledger.memories.commit_store_batch(ADA, batch(memory("new")))
    return data, backup


async def test_a_killed_restore_leaves_one_of_the_two_whole(tmp_path: Path, templates: Path) -> None:
    kill_at, seen = 0, set()
    while True:
        kill_at += 1
        (folder := tmp_path / str(kill_at)).mkdir()
        data, backup = await make_stores(folder, templates)
        killed = run(RESTORE, str(kill_at), str(backup), data_dir=data)
        found = frozenset(texts(data / "memory.db"))
        seen.add(found)
        assert found in ({"old"}, {"new"}), killed.stderr
        kept = [path for path in data.glob("until-*/memory.db") if path.stat().st_size]
        assert found == {"new"} or any(texts(path) == {"new"} for path in kept)
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    with no_host_left(data):  # the next one tidies up
        assert madeleine(data, "restore", "--yes", str(backup)).returncode == 0
        assert texts(data / "memory.db") == {"old"}
        assert list(data.glob("memory.db.*")) == []
    assert seen == {frozenset({"old"}), frozenset({"new"})}
    assert kill_at > 10
