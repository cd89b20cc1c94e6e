"""What lies on the disk after real use: nobody else can read it, and no secret is in it; and who used it is written."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.serving import ROOT, RawConnection, call_tool, command, connected, environment
from tests.waiting import DEADLOCK_S

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PHRASE = "Tr0ub4dor" + "And3"
KEY = "\n".join(
    ["-----BEGIN PRIVATE " + "KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "-----END PRIVATE " + "KEY-----"]
)


def madeleine(data_dir: Path, *arguments: str, **more: str) -> str:
    """What a command prints. Started under a umask that closes nothing."""
    done = subprocess.run(
        [*command(), *arguments], env=environment(data_dir, **more), cwd=ROOT, capture_output=True, timeout=DEADLOCK_S,
        check=True, encoding="utf-8", umask=0,
    )  # fmt: skip
    return done.stdout


def open_to_others(root: Path) -> list[str]:
    return [str(path) for path in (root, *root.rglob("*")) if path.lstat().st_mode & 0o077 and not path.is_symlink()]


@pytest.mark.skipif(os.name == "nt", reason="permissions are inherited there")
@pytest.mark.slow
def test_everything_in_the_data_directory_is_for_its_owner_alone_also_under_a_lax_umask(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    madeleine(data_dir, "note", str(a_file(tmp_path, '{"action": "We found a note"}')))
    with subprocess.Popen(
        command(), env=environment(data_dir), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, umask=0
    ) as process:
        try:
            client = RawConnection(process)
            assert not client.store(b'{"text": "We drank tea in Combray"}')["result"]["isError"]
            for name, arguments in (("recall", {"query": "tea"}), ("run_patrol", {})):
                answer = client.call("tools/call", {"name": name, "arguments": arguments})
                assert not answer["result"]["isError"]
            names = {path.name for path in data_dir.rglob("*")}
            assert {"memory.db", "memory.db-wal", "memory.db-shm", "owner.lock", "index.json"} <= names
            assert open_to_others(data_dir) == []
            client.sink.close()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
    madeleine(data_dir, "reindex")
    assert open_to_others(data_dir) == []


def a_file(folder: Path, *lines: str) -> Path:
    file = folder / "notes.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def holding(root: Path, secret: str) -> list[str]:
    return [str(path) for path in root.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


@pytest.mark.slow
async def test_no_secret_reaches_the_disk_from_scenes_notes_or_queries_and_the_answer_counts_them(
    tmp_path: Path,
) -> None:
    data_dir = tmp_path / "data"
    async with connected(data_dir) as client:
        stored = await call_tool(
            client, "store", text=f"Ada told me her token {TOKEN} and the key\n{KEY}",
            dialogue=[f"password={PHRASE}"],
            feeling=f"uneasy about {TOKEN}", lesson=f"Never write {TOKEN}", themes=["tokens", TOKEN], actors=["Ada"],
            setting=f"postgres://ada:{PHRASE}@db", sensory=[TOKEN],
            when=["2026-03-01", {"date": "2026-03-02", "action": f"wrote {TOKEN}"}],
            session_id=TOKEN, key="k",
        )  # fmt: skip
        assert stored["redacted"] == {"github token": 7, "private key": 1, "password": 2}
        again = await call_tool(client, "store", text=f"Ada told me her token {TOKEN} and the key\n{KEY}", key="k")
        assert (again["id"], again["repeated"]) == (stored["id"], True)
        plain = await call_tool(client, "store", text="We drank tea in Combray")
        assert "Left out as a secret" in stored["notice"]
        assert "redacted" not in plain
        said = madeleine(data_dir, "note", str(a_file(tmp_path, json.dumps({"action": f"Bob has {TOKEN}"}), TOKEN)))
        assert "2 github token" in said
        await call_tool(client, "run_patrol")
        for query in (f"What about {TOKEN}?", f"password={PHRASE}"):
            await call_tool(client, "recall", query=query)
            await call_tool(client, "search_memory", query=query)
        answer = await call_tool(client, "recall", query="the token that Ada told me", format="memories")
        assert "[redacted: github token]" in answer["memories"][0]["text"]
    (tmp_path / "notes.jsonl").unlink()
    for secret in (TOKEN, PHRASE, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"):
        assert holding(data_dir, secret) == []


@pytest.mark.slow
async def test_a_note_that_lay_in_the_inbox_before_is_cleaned_when_the_patrol_takes_it(tmp_path: Path) -> None:
    notes = a_file(tmp_path, json.dumps({"action": f"Bob has {TOKEN}"}), f"no JSON, but {TOKEN}")
    madeleine(tmp_path / "data", "note", str(notes), MADELEINE_REDACT="off")
    async with connected(tmp_path / "data") as client:
        before = await call_tool(client, "search_memory", query=TOKEN)
        assert len(before["hits"]) == 2
        await call_tool(client, "run_patrol")
        assert (await call_tool(client, "search_memory", query=TOKEN))["hits"] == []
        cleaned = await call_tool(client, "search_memory", query='"[redacted: github token]"')
        assert sorted(hit["source"] for hit in cleaned["hits"]) == ["memories", "notes"]


async def test_turned_off_what_is_told_is_kept_as_it_is(tmp_path: Path) -> None:
    async with connected(tmp_path, more={"MADELEINE_REDACT": "0"}) as client:
        assert "redacted" not in await call_tool(client, "store", text=f"The test token is {TOKEN}")
        assert (await call_tool(client, "search_memory", query=TOKEN))["hits"] != []


@pytest.mark.slow
async def test_the_audit_tells_beside_a_running_server_who_wrote_and_recalled_what_and_never_a_text(
    tmp_path: Path,
) -> None:
    """spec O4, O10."""
    data_dir = tmp_path / "data"
    async with connected(data_dir) as client:
        stored = await call_tool(client, "store", text="We drank tea in Combray", session_id="s1")
        # Prompts and fragments name no ids themselves: their sources do.
        for shape in ("fragments", "memories", "prompt"):
            await call_tool(client, "recall", query="tea in Combray", format=shape)
        await call_tool(client, "search_memory", query="zebra")
        [whole] = (await call_tool(client, "recall_memory", ids=[stored["id"]]))["memories"]
        full_id = whole["provenance"]["full_id"]
        beside = [json.loads(line) for line in madeleine(data_dir, "audit", "--json", "--event", "store").splitlines()]
        assert [entry["ids"] for entry in beside] == [[full_id]]
    madeleine(data_dir, "reindex")
    printed = madeleine(data_dir, "audit", "--json")
    entries = [json.loads(line) for line in printed.splitlines()]
    assert [(entry["event"], entry["tool"], entry["ids"]) for entry in entries] == [
        ("store", "store", [full_id]),
        ("recall", "recall", [full_id]),
        ("recall", "recall", [full_id]),
        ("recall", "recall", [full_id]),
        ("recall", "search_memory", []),
        ("recall", "recall_memory", [full_id]),
        ("reindex", "", []),
    ]
    assert {entry["being_id"] for entry in entries[:-1]} == {"ada"}
    assert all(entry["client"] for entry in entries)
    assert "Combray" not in printed
    assert "zebra" not in printed
    assert len(madeleine(data_dir, "audit", "--being", "ada", "--limit", "2").splitlines()) == 2


def test_an_audit_of_nothing_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        madeleine(tmp_path / "nowhere", "audit")
    assert "no memory" in failed.value.stderr
    assert not (tmp_path / "nowhere").exists()
