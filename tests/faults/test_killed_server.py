"""SIGKILL in the middle of stores: what was acknowledged is there, once, and recallable."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.serving import ROOT, call_tool, command, connected, environment, raw_connection, snippets
from tests.waiting import DEADLOCK_S

FACTS = ("lamp", "kettle", "violin", "ladder", "compass", "teapot", "bicycle", "mirror", "candle", "barrel")
ToolCallContext = tuple[str, dict[str, object]]
ROUNDS_SLOW = 6
ROUNDS_FAST = 1


def store_until_killed(data_dir: Path, texts: list[str], *, kill_after: int, more_seconds: float) -> list[str]:
    """The texts acknowledged."""
    calls: list[ToolCallContext] = [("store", {"text": text, "session_id": "kill"}) for text in texts]
    done = call_until_killed(data_dir, calls, kill_after=kill_after, more_seconds=more_seconds)
    return [texts[number] for number in done]


def call_until_killed(
    data_dir: Path, calls: list[ToolCallContext], *, kill_after: int, more_seconds: float
) -> list[int]:
    """Pipelined calls; the server is killed some time after the answer number `kill_after`. Those acknowledged."""
    acknowledged: list[int] = []
    with subprocess.Popen(
        command(), env=environment(data_dir), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        sink = process.stdin

        def send(message: dict[str, object]) -> None:
            sink.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")

        def write() -> None:
            try:
                info = {"name": "killer", "version": "1"}
                params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
                send({"id": "init", "method": "initialize", "params": params})
                send({"method": "notifications/initialized"})
                for number, (tool, arguments) in enumerate(calls):
                    params = {"name": tool, "arguments": arguments}
                    send({"id": number, "method": "tools/call", "params": params})
                sink.flush()
            except (BrokenPipeError, ValueError):
                pass

        writer = threading.Thread(target=write)
        writer.start()
        for line in process.stdout:
            answer = json.loads(line)
            if answer["id"] == "init":
                continue
            assert not answer["result"]["isError"], answer
            acknowledged.append(answer["id"])
            if len(acknowledged) == kill_after:
                threading.Timer(more_seconds, process.send_signal, [signal.SIGKILL]).start()
        assert process.wait(timeout=DEADLOCK_S) == -signal.SIGKILL
        writer.join(timeout=DEADLOCK_S)
        with suppress(BrokenPipeError):
            sink.close()
    return acknowledged


async def every_memory(data_dir: Path) -> Counter[str]:
    async with connected(data_dir) as client:
        return await snippets(client, "number")


@pytest.mark.parametrize("rounds", [ROUNDS_FAST, pytest.param(ROUNDS_SLOW, marks=pytest.mark.slow)])
async def test_every_acknowledged_memory_survives_rounds_of_sigkill_once_and_recallable(
    tmp_path: Path, rounds: int
) -> None:
    chance = random.Random(rounds)
    acknowledged: list[str] = []
    for round_ in range(rounds):
        texts = [f"Round {round_} number {n}: somebody hid a {chance.choice(FACTS)} in attic {n}" for n in range(200)]
        acknowledged += store_until_killed(
            tmp_path, texts, kill_after=chance.randrange(1, 40), more_seconds=chance.random() * 0.05
        )
        found = await every_memory(tmp_path)
        assert [text for text in acknowledged if found[text] != 1] == []
        assert set(found.values()) == {1}
    async with connected(tmp_path) as client:
        for text in chance.sample(acknowledged, min(20, len(acknowledged))):
            answer = await call_tool(client, "recall", query=text, format="memories", limit=3)
            assert text in [memory["text"] for memory in answer["memories"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The data directory of a server that has ended, to be copied, and the id of each fact's memory."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    with raw_connection(folder) as client:
        stored = [
            client.store(json.dumps({"text": f"In room {n} there is a {fact}", "key": fact}).encode())
            for n, fact in enumerate(FACTS)
        ]
    return folder, [answer["result"]["structuredContent"]["id"] for answer in stored]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["removed", "emptied", "halved", "nonsense"])
async def test_a_damaged_index_is_healed_at_the_next_start(
    tmp_path: Path, whole: tuple[Path, list[str]], damage: str
) -> None:
    pristine, ids = whole
    data_dir = tmp_path / "data"
    shutil.copytree(pristine, data_dir)
    index = data_dir / "index"
    files = [path for path in sorted(index.rglob("*")) if path.is_file()]
    assert files
    if damage == "removed":
        shutil.rmtree(index)
    for path in files if damage != "removed" else []:
        content = path.read_bytes()
        path.write_bytes({"emptied": b"", "halved": content[: len(content) // 2], "nonsense": b"\x00" * 17}[damage])
    async with connected(data_dir) as client:
        for n, fact in enumerate(FACTS):
            answer = await call_tool(client, "recall", query=f"Where is the {fact}?", format="memories", limit=1)
            assert [memory["id"] for memory in answer["memories"]] == [ids[n]]
        again = await call_tool(client, "store", text="In room 0 there is a lamp", key="lamp")
    assert again["id"] == ids[0]


@pytest.mark.slow
async def test_each_single_file_of_the_index_may_be_lost(tmp_path: Path, whole: tuple[Path, list[str]]) -> None:
    pristine, _ = whole
    names = [path.relative_to(pristine) for path in sorted((pristine / "index").rglob("*")) if path.is_file()]
    for number, name in enumerate(random.Random(5).sample(names, min(3, len(names)))):
        data_dir = tmp_path / str(number)
        shutil.copytree(pristine, data_dir)
        (data_dir / name).unlink()
        async with connected(data_dir) as client:
            answer = await call_tool(client, "recall", query="Where is the violin?", format="memories", limit=1)
        assert [memory["text"] for memory in answer["memories"]] == ["In room 2 there is a violin"], name


@pytest.mark.slow
async def test_an_acknowledged_act_on_the_truth_survives_sigkill_and_no_other_is_half_done(
    tmp_path: Path, whole: tuple[Path, list[str]]
) -> None:
    """ruling 14: the kill came between the ledger and the index in tests of one process only."""
    pristine, ids = whole
    data_dir = tmp_path / "data"
    shutil.copytree(pristine, data_dir)
    chance = random.Random(3)
    new = [f"In room {n} there is a drum instead of a {fact}" for n, fact in enumerate(FACTS)]
    calls: list[ToolCallContext] = [
        ("store", {"text": new[n], "supersedes": ids[n]})
        if n % 3 == 0
        else ("update_memory", {"id": ids[n], "retracted": "It was empty"})
        if n % 3 == 1
        else ("update_memory", {"id": ids[n], "text": new[n], "when": "2026-03"})
        for n in range(len(FACTS))
    ]
    done = call_until_killed(data_dir, calls, kill_after=chance.randrange(2, 7), more_seconds=chance.random() * 0.02)
    async with connected(data_dir) as client:
        for n, fact in enumerate(FACTS):
            answer = await call_tool(client, "recall", query=f"Where is the {fact}?", format="memories", limit=1)
            texts = [memory["text"] for memory in answer["memories"] if fact in memory["text"]]
            [old] = (await call_tool(client, "recall_memory", ids=[ids[n]]))["memories"]
            acted = old["truth"] != "current"
            assert acted or n not in done, (n, old)
            before, after = f"In room {n} there is a {fact}", [] if n % 3 == 1 else [new[n]]
            assert texts == (after if acted else [before]), (n, done)
            if acted and after:
                assert [(one["text"], one["truth"]) for one in old["versions"]] == [
                    (before, "superseded"),
                    (new[n], "current"),
                ]
