"""A memory leaves and comes back by the commands that a person types, while a client uses it (issue: out and back)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.hosting import Asker, asking, madeleine, mode, no_host_left

pytestmark = pytest.mark.slow

TEXTS = ("We moved to the harbour in May.", "Fridolin the cat is afraid of thunder.", "The rent is 900 euros.")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with no_host_left(tmp_path / "home"):
        yield tmp_path / "home"


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Path]:
    with no_host_left(tmp_path / "other"):
        yield tmp_path / "other"


def told(client: Asker, first: int = 1) -> list[str]:
    """Short ids of the texts, once they are stored."""
    for number, text in enumerate(TEXTS, start=first):
        client.store(number, text)
    answers = {answer["id"]: answer for answer in client.wait_for(len(TEXTS))}
    return [answers[number]["result"]["structuredContent"]["id"] for number in range(first, first + len(TEXTS))]


def answer(client: Asker, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    client.call(number, tool, **arguments)
    answers = client.wait_for(number)
    [result] = [one["result"]["structuredContent"] for one in answers if one["id"] == number]
    return dict(result)


def run(data_dir: Path, *words: str, code: int = 0) -> str:
    completed = madeleine(data_dir, *words)
    assert completed.returncode == code, (completed.stdout, completed.stderr)
    return completed.stdout + completed.stderr


def test_a_memory_moves_to_another_machine_and_is_recalled_there_at_once(
    home: Path, other: Path, tmp_path: Path
) -> None:
    file, again = tmp_path / "e.jsonl", tmp_path / "f.jsonl"
    with asking(home) as client:
        ids = told(client)
        run(home, "export", str(file))
    assert mode(file) == 0o600
    with asking(other) as client:
        answer(client, 1, "recall_memory")
        assert "Would import" in run(other, "import", "--dry-run", str(file))
        assert "3 memories" in run(other, "import", str(file))
        run(other, "import", str(file), code=3)
        run(other, "export", str(again))
        assert again.read_bytes() == file.read_bytes()
        found = answer(client, 2, "recall", query="Where did we move to?", format="memories")
        assert [memory["id"] for memory in found["memories"]] == ids[:1]
    [done] = json.loads(run(other, "import", "--list", "--json"))
    assert "3 memories were removed" in run(other, "import", "--undo", done["id"])
    run(other, "import", "--undo", done["id"], code=2)


def test_forgetting_names_the_copies_and_neither_brings_it_back(home: Path, tmp_path: Path) -> None:
    """Ruling 25."""
    export, backup = tmp_path / "e.jsonl", tmp_path / "b.db"
    with asking(home) as client:
        ids = told(client)
        run(home, "export", str(export))
        run(home, "backup", str(backup))
        assert mode(backup) == 0o600
        forgotten = answer(client, 4, "forget", ids=ids[1:2])
        assert forgotten["copies"] == [str(export), str(backup)]
        assert "1 were forgotten here" in run(home, "import", str(export), code=3)
    run(home, "restore", str(backup), code=2)  # nobody can be asked
    told_by = run(home, "restore", "--yes", str(backup))
    assert "Forgotten since" in told_by
    assert "2 memories" in told_by
    for path in (path for path in home.rglob("*") if path.is_file()):
        assert b"Fridolin" not in path.read_bytes(), path
    assert b"Fridolin" in backup.read_bytes()
    with asking(home) as client:
        found = answer(client, 1, "search_memory", query="harbour")
        assert len(found["hits"]) == 1


def test_a_restore_under_a_client_keeps_what_it_replaces(home: Path, tmp_path: Path) -> None:
    backup = tmp_path / "b.db"
    with asking(home) as client:
        answer(client, 1, "store", text=TEXTS[0])
        run(home, "backup", str(backup))
        answer(client, 2, "store", text=TEXTS[1])
        run(home, "restore", "--yes", str(backup))
        found = answer(client, 3, "search_memory", query="Fridolin harbour", mode="or")
        assert ["harbour" in json.dumps(hit) for hit in found["hits"]] == [True]
    [kept] = home.glob("until-*")
    with closing(sqlite3.connect(kept / "memory.db")) as connection:
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (2,)
    with asking(home) as client:  # what was put aside holds it as well (ruling 25)
        [hit] = answer(client, 1, "search_memory", query="harbour")["hits"]
        assert str(kept) in answer(client, 2, "forget", ids=[hit["id"]])["copies"]


@pytest.mark.parametrize("damage", ["cut off", "no database"])
def test_a_backup_takes_the_place_of_a_damaged_memory(home: Path, tmp_path: Path, damage: str) -> None:
    """It was refused, with the advice to restore a backup."""
    backup = tmp_path / "b.db"
    with asking(home) as client:
        answer(client, 1, "store", text=TEXTS[0])
        run(home, "backup", str(backup))
    run(home, "stop")
    run(home, "export", str(tmp_path / "e.jsonl"))
    run(home, "export", "-", "--being", "ada")
    audit = [json.loads(line) for line in run(home, "audit", "--json").splitlines()]
    assert [(one["event"], one["being_id"], one["client"]) for one in audit if one["event"] != "store"] == [
        ("backup", "", "madeleine backup"), ("export", "", "madeleine export"), ("export", "ada", "madeleine export"),
    ], "spec O10"  # fmt: skip
    memory = home / "memory.db"
    whole = memory.read_bytes()
    memory.write_bytes(whole[: len(whole) // 2] if damage == "cut off" else b"\0" * len(whole))
    assert "damaged" in run(home, "restore", "--yes", str(backup))
    assert "restore madeleine restore" in run(home, "audit")
    with asking(home) as client:
        assert len(answer(client, 1, "search_memory", query="harbour")["hits"]) == 1
    assert len(list(home.glob("until-*/memory.db"))) == 1


@pytest.mark.parametrize("content", [b"no database", b"", b'{"format":"madeleine-export"}\n'])
def test_a_file_that_is_no_backup_changes_nothing(home: Path, tmp_path: Path, content: bytes) -> None:
    with asking(home) as client:
        answer(client, 1, "store", text=TEXTS[0])
    file = tmp_path / "b.db"
    file.write_bytes(content)
    run(home, "restore", "--yes", str(file), code=2)
    assert list(home.glob("until-*")) == []
    assert "harbour" in run(home, "export", "-")


def test_an_export_does_not_replace_another_file(home: Path, tmp_path: Path) -> None:
    with asking(home) as client:
        answer(client, 1, "store", text=TEXTS[0])
    (letter := tmp_path / "letter.txt").write_text("Dear Ada")
    run(home, "export", str(letter), code=2)
    run(home, "backup", str(letter), code=2)
    assert letter.read_text() == "Dear Ada"
    run(home, "export", "--being", "nobody", str(tmp_path / "n.jsonl"), code=3)
    run(home, "export", "--format", "markdown", str(tmp_path / "view"))
    assert "harbour" in (tmp_path / "view/Memories/Unsorted.md").read_text()


def test_a_torn_or_foreign_file_is_refused_with_what_to_do(home: Path, tmp_path: Path) -> None:
    with asking(home) as client:
        answer(client, 1, "store", text=TEXTS[0])
        run(home, "export", str(tmp_path / "e.jsonl"))
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes((tmp_path / "e.jsonl").read_bytes()[:-30])
    assert "Nothing was imported" in run(home, "import", str(torn), code=2)
    assert "Nothing was imported" in run(home, "import", str(tmp_path / "missing"), code=2)
    run(home, "import", code=2)
