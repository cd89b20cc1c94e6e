"""The ledger's file deleted, emptied, replaced or damaged, stopped and running: nothing is acknowledged into a file
that goes with its process, and no empty memory takes the place of a lost one."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from madeleine.server.background.index_origin import SourceLedgerStateOfIndex
from tests.e2e.hosting import Asker, asking, hosted, hosts_of, madeleine, wait_until_gone
from tests.e2e.serving import call_tool, furnish, tool_error

LAMP, KETTLE = "The lamp stands in the attic", "The kettle stands in the cellar"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with one memory, whose host has ended."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    _tell(folder, LAMP)
    return folder


def _tell(data_dir: Path, *texts: str) -> None:
    with asking(data_dir, arguments=["--in-process"]) as asker:
        for number, text in enumerate(texts):
            asker.store(number, text)
        assert not any(answer["result"]["isError"] for answer in asker.wait_for(len(texts)))
        assert asker.close() == 0


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if "index/" in path.as_posix()}


def _delete(data_dir: Path) -> None:
    (data_dir / "memory.db").unlink()


def _empty(data_dir: Path) -> None:
    (data_dir / "memory.db").write_bytes(b"")


def _replace_by_new(data_dir: Path) -> None:
    """As `madeleine token create` made one in the place of a lost ledger."""
    _delete(data_dir)
    other = data_dir.parent / "other"
    furnish(other)
    shutil.copy(other / "memory.db", data_dir)


@pytest.mark.slow
@pytest.mark.parametrize("lose", [_delete, _empty, _replace_by_new])
async def test_a_ledger_that_is_gone_is_refused_with_both_ways_out_and_the_index_is_kept(
    whole: Path, data_dir: Path, lose: Callable[[Path], None]
) -> None:
    """A new empty memory took its place without a word, and the index was replaced."""
    shutil.copytree(whole, data_dir)
    lose(data_dir)
    indexed = _files(data_dir)
    async with hosted(data_dir) as client:
        for tool, arguments in (("recall", {"query": "lamp"}), ("store", {"text": KETTLE})):
            said = await tool_error(client, tool, arguments)
            assert "backup" in said
            assert "reindex --start-anew" in said
        assert _files(data_dir) == indexed
        shutil.copy(whole / "memory.db", data_dir)  # the first way out, without a new start
        assert (await call_tool(client, "recall", query="lamp", format="memories"))["memories"]
    madeleine(data_dir, "stop")
    lose(data_dir)
    for command in (("token", "list"), ("status",), ("reindex",)) if lose is _empty else ():
        refused = madeleine(data_dir, *command)
        assert (refused.returncode, "--start-anew" in refused.stderr) == (2, True), command
    anew = madeleine(data_dir, "reindex", "--start-anew")  # the second
    assert anew.returncode == 0, anew.stderr
    async with hosted(data_dir) as client:
        assert not (await call_tool(client, "recall", query="lamp", format="memories"))["memories"]
        await call_tool(client, "store", text=KETTLE)
    assert [name for name in _files(data_dir) if name.endswith("index/index.json") and "until-" in name]


def _delete_log(data_dir: Path) -> None:
    (data_dir / "memory.db-wal").unlink()


def _move_away(data_dir: Path) -> None:
    data_dir.rename(data_dir.with_name("moved"))


def _replace(data_dir: Path) -> None:
    copy = data_dir / "copy"
    shutil.copy(data_dir / "memory.db", copy)
    copy.replace(data_dir / "memory.db")


@pytest.mark.parametrize("lose", [_delete, _empty, _delete_log, _replace, _move_away])
def test_nothing_is_acknowledged_into_a_file_that_is_no_longer_at_its_path_and_the_host_ends(
    data_dir: Path, lose: Callable[[Path], None]
) -> None:
    """`store` answered "stored" into a deleted file."""
    with asking(data_dir) as asker:
        asker.store(0, LAMP)
        asker.wait_for(1)
        [host] = hosts_of(data_dir)
        lose(data_dir)
        asker.store(1, KETTLE)
        wait_until_gone(host)
        if answers := [answer for answer in _answers(asker) if answer["id"] == 1 and "result" in answer]:
            stored = not answers[0]["result"]["isError"]
            assert not stored or KETTLE in _stored_texts(data_dir)


def _answers(asker: Asker) -> list[dict[str, Any]]:
    return asker.wait_for(2)


def _stored_texts(data_dir: Path) -> list[str]:
    with sqlite3.connect(data_dir / "memory.db") as connection:
        return [row[0] for row in connection.execute("SELECT action FROM memories")]


@pytest.mark.slow
def test_a_host_whose_directory_is_gone_ends(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        asker.store(0, LAMP)
        asker.wait_for(1)
        [host] = hosts_of(data_dir)
        shutil.rmtree(data_dir)
        wait_until_gone(host)


@pytest.mark.slow
async def test_a_ledger_older_than_its_index_or_of_another_store_is_healed(whole: Path, data_dir: Path) -> None:
    """As many memories as the index has, but others: the count alone did not tell."""
    shutil.copytree(whole, data_dir)
    with asking(data_dir, arguments=["--in-process"]) as asker:
        asker.call(0, "forget", ids=["m1"])
        asker.store(1, KETTLE)
        asker.wait_for(2)
        asker.close()
    shutil.copy(whole / "memory.db", data_dir)
    async with hosted(data_dir) as client:
        [found] = (await call_tool(client, "recall", query="Where is the lamp?", format="memories"))["memories"]
        assert found["text"] == LAMP
    madeleine(data_dir, "stop")
    other = data_dir.with_name("other")
    _tell(other, KETTLE)
    shutil.copy(other / "memory.db", data_dir)
    async with hosted(data_dir) as client:
        [found] = (await call_tool(client, "recall", query="Where is the kettle?", format="memories"))["memories"]
        assert found["text"] == KETTLE
    copied = data_dir.with_name("copied")
    shutil.copytree(other, copied)
    assert SourceLedgerStateOfIndex.read(copied / "index") == SourceLedgerStateOfIndex.read(other / "index") is not None
    _tell(copied, LAMP)


def _make_index_a_file(data_dir: Path) -> None:
    shutil.rmtree(data_dir / "index")
    (data_dir / "index").write_text("not an index", encoding="utf-8")


def _flip(column: str, value: bytes) -> Callable[[Path], None]:
    def flip(data_dir: Path) -> None:
        with sqlite3.connect(data_dir / "memory.db") as connection:
            connection.execute(f"UPDATE memories SET {column} = CAST(? AS TEXT)", (value,))

    return flip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "way_out"),
    [
        (_make_index_a_file, "move it away"),
        (_flip("when_", b'["2026-'), "backup"),
        (_flip("action", b"The lamp \xff\xfe stands"), "backup"),
        (_flip("created_at", b"soon"), "backup"),
    ],
    ids=["index-a-file", "half-json", "not-utf8", "no-number"],
)
async def test_damage_is_said_in_words_with_the_way_out(
    whole: Path, data_dir: Path, damage: Callable[[Path], None], way_out: str
) -> None:
    """It was "incident … Try again"."""
    shutil.copytree(whole, data_dir)
    damage(data_dir)
    async with hosted(data_dir) as client:
        said = await tool_error(client, "recall", {"query": "Where is the lamp?", "format": "memories"})
        assert way_out in said
        assert "incident" not in said
        assert "stands" not in said, "no text in an error"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads what it likes")
async def test_a_ledger_that_may_not_be_read_is_said_in_words(whole: Path, data_dir: Path) -> None:
    shutil.copytree(whole, data_dir)
    (data_dir / "memory.db").chmod(0)
    async with hosted(data_dir) as client:
        assert "owner" in await tool_error(client, "recall", {"query": "lamp"})
