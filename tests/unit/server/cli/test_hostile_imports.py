"""Files that were made to harm: a clear reason, a bounded number of reasons, bounded memory. Each is imported by a real
process whose address space is limited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from madeleine.server.cli.main import main

MAX_PROCESS_BYTES = 1_500_000_000
ONE = {"uuid": "c1", "name": "A talk", "chat_messages": [{"uuid": "m1", "sender": "human", "text": "Ada likes tea."}]}
LIMITED_IMPORT = (
    "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2);"
    "from madeleine.server.cli.main import main; sys.exit(main(sys.argv[2:]))"
)


def import_limited(tmp_path: Path, file: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MADELEINE_DATA_DIR": str(tmp_path / "data"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LIMITED_IMPORT, str(MAX_PROCESS_BYTES), "import", str(file)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)


def zipped(file: Path, write: Callable[[zipfile.ZipFile], None], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(file, "w", compression) as archive:
        write(archive)
    return file


def write_huge_element(archive: zipfile.ZipFile, megabytes: int) -> None:
    with archive.open("conversations.json", "w", force_zip64=True) as member:
        member.write(b'[{"uuid": "big", "name": "')
        for _ in range(megabytes // 10):
            member.write(b"a" * 10_000_000)
        member.write(b'"}]')


def write_empty_conversations_and_strangers(archive: zipfile.ZipFile, of_each: int) -> None:
    empty = json.dumps({"uuid": "e", "chat_messages": []})
    archive.writestr("conversations.json", f"[{json.dumps(ONE)}{(',' + empty) * of_each}{',{}' * of_each}]")


HUGE_REASON = "one entry has more than 16,777,216 characters"
HOSTILE = {
    "an element of 400 MB": (partial(write_huge_element, megabytes=400), HUGE_REASON),
    "an element of 3 GB": (partial(write_huge_element, megabytes=3_000), HUGE_REASON),
    "strangers": (partial(write_empty_conversations_and_strangers, of_each=50_000), "49,980 more entries"),
    "a million": (partial(write_empty_conversations_and_strangers, of_each=1_000_000), "999,980 more entries"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_export_is_refused_with_a_reason_in_bounded_memory(tmp_path: Path, name: str) -> None:
    write, reason = HOSTILE[name]
    ended = import_limited(tmp_path, zipped(tmp_path / "export.zip", write))
    assert reason in ended.stderr, ended.stderr[-2_000:]
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) < 40
    assert ended.returncode in (1, 2)


@pytest.fixture
def refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path], str]:
    """What the command says of a file that it refuses, in this process."""
    monkeypatch.setenv("MADELEINE_DATA_DIR", str(tmp_path / "data"))

    def refuse(file: Path) -> str:
        assert main(["import", str(file)]) == 2
        return capsys.readouterr().err

    return refuse


def test_an_archive_that_is_no_export_is_refused_with_the_way_out(
    tmp_path: Path, refusal: Callable[[Path], str]
) -> None:
    nested = zipped(tmp_path / "a.zip", lambda it: it.writestr("export.zip", b"PK"))
    binary = zipped(tmp_path / "b.zip", lambda it: it.writestr("conversations.json", b"PK\x03\x04\xff\xfe"))
    lzma = zipped(tmp_path / "d.zip", lambda it: it.writestr("conversations.json", "[]"), zipfile.ZIP_LZMA)
    assert "has an archive in it ('export.zip')" in refusal(nested)
    assert "not text in UTF-8" in refusal(binary)
    assert "compressed in a way that no export is" in refusal(lzma)
