"""Clients of one host: whatever one of them does, the others and the host go on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.hosting import asking, hosts_of
from tests.e2e.serving import COMMAND, ROOT, environment
from tests.waiting import DEADLOCK_S


def test_a_client_that_is_killed_takes_nobody_with_it(data_dir: Path) -> None:
    """Its answers find nobody to read them; the host, and the others, go on."""
    with asking(data_dir) as other:
        other.store(0, "The lamp is broken")
        other.wait_for(1)
        hosts = hosts_of(data_dir)
        for _ in range(3):
            with asking(data_dir) as one:
                for number in range(30):
                    one.store(number, f"Brick {number} is red")
                one.wait_for(1)
                one.process.kill()
        other.call(1, "recall", query="Which lamp is broken?")
        assert len(other.wait_for(2)[-1]["result"]["structuredContent"]["sources"]) >= 1
        assert hosts_of(data_dir) == hosts


def test_a_client_that_reads_nothing_holds_up_nobody_else(data_dir: Path) -> None:
    slow = subprocess.Popen(COMMAND, env=environment(data_dir), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert slow.stdin
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "slow", "version": "1"}}
        init: dict[str, Any] = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}
        slow.stdin.write(json.dumps(init).encode() + b"\n")
        for n in range(300):
            slow.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n + 1, "method": "tools/list"}).encode() + b"\n")
        slow.stdin.flush()
        with asking(data_dir) as other:
            other.store(0, "The lamp is broken")
            assert other.wait_for(1)[0]["result"]["structuredContent"]["status"] == "stored"
    finally:
        slow.kill()
        slow.communicate(timeout=DEADLOCK_S)


def test_a_forwarder_that_is_told_to_end_finishes_and_leaves_the_host_to_others(data_dir: Path) -> None:
    with asking(data_dir) as one, asking(data_dir) as other:
        one.store(0, "The lamp is broken")
        one.wait_for(1)
        one.store(1, "The kettle is new")
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(timeout=DEADLOCK_S) == 0
        other.call(0, "recall", query="Which lamp is broken?")
        assert len(other.wait_for(1)[-1]["result"]["structuredContent"]["sources"]) >= 1
        assert len(hosts_of(data_dir)) == 1


def test_code_in_the_directory_of_a_client_is_not_run(data_dir: Path, tmp_path: Path) -> None:
    """Clients start their servers in a project, which may have a `server` of its own."""
    project = tmp_path / "project"
    (project / "server").mkdir(parents=True)
    (project / "server" / "__init__.py").write_text("raise SystemExit('foreign code')\n", encoding="utf-8")
    forwarder = "import sys; sys.path.remove(''); from madeleine.server.cli.main import main; sys.exit(main([]))"
    line = {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {}}
    found = subprocess.run(
        [sys.executable, "-c", forwarder],
        env=environment(data_dir),
        cwd=project,
        input=json.dumps(line).encode() + b"\n",
        capture_output=True,
        timeout=DEADLOCK_S,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert json.loads(found.stdout)["id"] == 0
    [pid] = hosts_of(data_dir)
    assert Path(f"/proc/{pid}/cwd").resolve() == data_dir.resolve()


def test_requests_from_a_file_are_answered_to_the_last(data_dir: Path, tmp_path: Path) -> None:
    """A selector cannot watch a file: a thread reads it, as it does all input on Windows."""
    file, answers = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "file", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": "init", "method": "initialize", "params": info},
        {"method": "notifications/initialized"},
        *(
            {"id": n, "method": "tools/call", "params": {"name": "store", "arguments": {"text": f"Brick {n} is red"}}}
            for n in range(5)
        ),
    ]
    lines = [json.dumps({"jsonrpc": "2.0"} | message) for message in messages]
    file.write_text("\n".join([*lines, "no json at all"]), encoding="utf-8")
    with file.open("rb") as source, answers.open("wb") as sink:
        found = subprocess.run(
            COMMAND,
            env=environment(data_dir),
            cwd=ROOT,
            stdin=source,
            stdout=sink,
            timeout=DEADLOCK_S,
            check=False,
        )
    assert found.returncode == 0
    got = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    assert sorted(str(answer.get("id")) for answer in got) == sorted(["init", *"01234", "None"])
