"""`madeleine doctor`: it finds what is wrong, in words, on any store, and changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from madeleine.inference.default_model import multilingual_encoder
from madeleine.inference.default_model.model_files import ModelFiles
from madeleine.server import EXIT_FAILURE
from madeleine.server.cli.main import main
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.open_memory import open_memory_store
from madeleine.storage import resources
from madeleine.tools.tool import ToolCallContext
from tests.doubles import ADA, WordEmbedder
from tests.unit.tools.conftest import TOOLS

Report = Callable[[], Mapping[str, list[Mapping[str, Any]]]]
TEXTS = ("The harbour is at the end of the road.", "The harbour is at the end of the road!", "Thanks!", "Ann plays.")


@pytest.fixture
async def data_dir(tmp_path: Path) -> Path:
    """A memory of four scenes that was closed."""
    async with open_memory_store(Settings(data_dir=tmp_path / "data"), embedder=WordEmbedder()) as memory:
        for text in TEXTS:
            result = await TOOLS.call_tool(
                "store", {"text": text, "distinct": True}, ToolCallContext(ADA, memory.use_cases)
            )
            assert not result.is_error
    return tmp_path / "data"


@pytest.fixture
def report(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Report:
    """Findings by area, the exit code checked; nothing may have changed."""
    monkeypatch.setenv("MADELEINE_DATA_DIR", str(data_dir))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)

    def run() -> Mapping[str, list[Mapping[str, Any]]]:
        before = snapshot(tmp_path)
        code = main(["doctor", "--json"])
        assert snapshot(tmp_path) == before
        answer = json.loads(capsys.readouterr().out)
        problems = [finding for finding in answer["findings"] if finding["level"] == "problem"]
        assert (answer["problems"], code) == (len(problems), EXIT_FAILURE if problems else 0)
        assert all(finding["advice"] for finding in problems)
        by_area: dict[str, list[Mapping[str, Any]]] = {}
        for finding in answer["findings"]:
            by_area.setdefault(finding["area"], []).append(finding)
        return by_area

    return run


def snapshot(folder: Path) -> dict[str, str]:
    """Every file, and its content; SQLite may make its `-shm` file again."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if os.access(path, os.R_OK) else ""
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".db-shm"
    }


def levels(findings: list[Mapping[str, Any]]) -> set[str]:
    return {finding["level"] for finding in findings}


def test_a_whole_memory_has_no_problems_and_names_what_is_worth_a_look(report: Report) -> None:
    found = report()
    assert "problem" not in levels([finding for findings in found.values() for finding in findings])
    assert found["ledger"][0]["details"]["memories"] == {"ada": len(TEXTS)}
    noticed = {one["details"]["reason"]: one["details"]["count"] for one in found["memories"]}
    assert noticed == {"duplicate": 1, "junk": 1}


def test_what_looks_like_a_secret_is_a_problem_and_is_not_shown(report: Report, data_dir: Path) -> None:
    secret = "sk-ant-api03-" + "Ab3" * 30
    with closing(sqlite3.connect(data_dir / "memory.db")) as ledger, ledger:
        ledger.execute("UPDATE memories SET action = ? WHERE number = 4", (f"The key is {secret}",))
    [finding] = [one for one in report()["memories"] if one["level"] == "problem"]
    assert "m4" in finding["text"]
    assert secret not in json.dumps(finding)


def test_what_nobody_recalls_or_decides_is_named_when_it_is_old(report: Report, data_dir: Path) -> None:
    old = (utc_now() - timedelta(days=120)).timestamp() * 1_000_000
    with closing(sqlite3.connect(data_dir / "memory.db")) as ledger, ledger:
        ledger.execute("UPDATE memories SET created_at = ?", (int(old),))
        ledger.execute("UPDATE memories SET may_supersede = 'x' WHERE number = 1")
    noticed = {one["details"]["reason"]: one["details"]["count"] for one in report()["memories"]}
    assert (noticed["never recalled"], noticed["undecided"]) == (len(TEXTS), 1)


def tear_index(data_dir: Path) -> None:
    largest = max((data_dir / "index").rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0)
    largest.write_bytes(largest.read_bytes()[:10])


def damage_ledger(data_dir: Path) -> None:
    path = data_dir / "memory.db"
    content = bytearray(path.read_bytes())
    content[8_192:200_000] = b"\x00" * (200_000 - 8_192)
    path.write_bytes(content)


def make_ledger_nonsense(data_dir: Path) -> None:
    (data_dir / "memory.db").write_bytes(b"no database at all" * 1_000)


def remove_ledger(data_dir: Path) -> None:
    (data_dir / "memory.db").unlink()


def open_to_others(data_dir: Path) -> None:
    (data_dir / "memory.db").chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IROTH)


def newer_schema(data_dir: Path) -> None:
    with closing(sqlite3.connect(data_dir / "memory.db")) as ledger, ledger:
        ledger.execute("UPDATE alembic_version SET version_num = '9999'")


def garbage_settings(data_dir: Path) -> None:
    (data_dir / "madeleine.toml").write_bytes(b"\xff\xfe not TOML = = =")


@pytest.mark.parametrize(
    ("break_store", "area", "words"),
    [
        (tear_index, "index", "truncated"),
        (damage_ledger, "ledger", ""),
        (make_ledger_nonsense, "ledger", "cannot be read"),
        (remove_ledger, "ledger", "is missing"),
        (open_to_others, "permissions", "memory.db"),
        (newer_schema, "ledger", "newer Madeleine"),
        (garbage_settings, "settings", "madeleine.toml"),
    ],
)
def test_a_broken_store_is_told_in_words(
    report: Report, data_dir: Path, break_store: Callable[[Path], None], area: str, words: str
) -> None:
    break_store(data_dir)
    problems = [finding for finding in report()[area] if finding["level"] == "problem"]
    assert problems
    assert any(words in finding["text"] for finding in problems), problems
    assert not any("failed (" in finding["text"] for finding in problems), problems


def test_a_missing_model_file_and_a_full_disk_are_told(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = multilingual_encoder.MULTILINGUAL_ENCODER_FILES
    monkeypatch.setattr(multilingual_encoder, "MULTILINGUAL_ENCODER_FILES", ModelFiles(tmp_path / "no", whole.sha256))
    monkeypatch.setattr(resources, "disk_usage", lambda _: type("Usage", (), {"free": 1_000_000}))
    found = report()
    assert "No such file" in found["model"][0]["text"]
    assert "1 MB" not in found["data directory"][0]["text"]
    assert levels(found["data directory"]) == levels(found["model"]) == {"problem"}


def test_clients_and_hooks_are_read_in_their_own_formats(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")  # without the `madeleine` of the environment that runs the tests
    home, script = tmp_path / "home", tmp_path / "madeleine"
    script.touch(mode=0o755)
    entry = {"command": str(script), "args": [], "env": {"MADELEINE_BEING": "ada"}}
    hook = {"hooks": [{"type": "command", "command": "madeleine observe --recall"}]}
    files = {
        ".claude.json": json.dumps({"mcpServers": {"madeleine": entry}}),
        ".claude/settings.json": json.dumps({"hooks": {"SessionStart": [hook], "Stop": [hook]}}),
        ".cursor/mcp.json": json.dumps({"mcpServers": {"memory": {"command": "/gone/madeleine"}, "other": {}}}),
        ".codex/config.toml": '[mcp_servers.madeleine]\ncommand = "madeleine"\n',
        ".config/zed/settings.json": '// Zed\n{"context_servers": {"madeleine": {"url": "http://x/mcp"}, /* */},}',
        ".config/Code/User/mcp.json": '{"servers": ',
    }
    for name, content in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content, encoding="utf-8")
    found = report()
    by_client = {one["details"].get("client", one["text"].split(":")[0]): one for one in found["clients"]}
    assert {client: one["level"] for client, one in by_client.items()} == {
        "Claude Code": "ok", "Cursor": "problem", "Codex": "problem", "Zed": "ok", "VS Code": "note",
    }  # fmt: skip
    assert by_client["Claude Code"]["details"]["being"] == "ada"
    [hooks] = found["hooks"]
    assert "lack UserPromptSubmit, PreCompact, SessionEnd" in hooks["text"]


def test_a_language_model_without_its_key_is_a_problem(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADELEINE_LLM", "anthropic")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert levels(report()["language model"]) == {"problem"}


def test_the_table_for_people_names_the_same(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    report()
    assert main(["doctor"]) == 0
    assert "0 problems, " in capsys.readouterr().out
