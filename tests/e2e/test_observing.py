"""Conversations, from hooks, tools and exports into the chat history, and out of it for good."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat_exports import chatgpt, claude, node
from tests.e2e.hosting import asking, hosted, hosts_of, no_host_left
from tests.e2e.serving import COMMAND, ROOT, call_tool, connected, environment, tool_error
from tests.household import rows
from tests.remains import found_in
from tests.waiting import DEADLOCK_S

HARBOUR = "I live by the harbour in Xylomarseille"


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    with no_host_left(tmp_path / "data"):
        yield tmp_path / "data"


def run(data_dir: Path, *words: str, given: Any = "", being: str = "ada", **more: str) -> tuple[int, str, str]:
    """The command with something on standard input: exit code, output, errors. On a busy machine a first start takes
    longer than a hook waits."""
    patience = ["--timeout", "60"] if words[0] == "observe" and "--timeout" not in words else []
    found = subprocess.run(
        [*COMMAND, *words, *patience],
        env=environment(data_dir, being, **more),
        cwd=ROOT,
        input=given if isinstance(given, str) else json.dumps(given),
        capture_output=True,
        text=True,
        timeout=DEADLOCK_S,
        check=False,
    )
    return found.returncode, found.stdout, found.stderr


def kept(data_dir: Path, being: str = "ada") -> list[tuple[str, str, str]]:
    """(session, role, text) as they are in the ledger."""
    statement = "SELECT session_id, role, text FROM messages WHERE being_id = ? ORDER BY seq"
    return [tuple(row) for row in rows(data_dir / "memory.db", statement, being)]


def transcript(path: Path, *said: tuple[str, Any]) -> Path:
    lines = [
        {"type": role, "uuid": f"u{n}", "timestamp": f"2026-03-01T12:00:{n:02}Z"}
        | {"message": {"role": role, "content": content}}
        for n, (role, content) in enumerate(said)
    ]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


# --- the tool


async def test_what_is_observed_is_kept_once_remembered_if_asked_and_forgotten_for_good(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "text": f"{HARBOUR}, and my token is ghp_{'a1B2' * 9}", "speaker": "Zoé", "key": "k1"},
        {"role": "assistant", "text": "How lovely", "key": "k2"},
    ]
    memory = {
        "text": "Zoé lives by the harbour in Xylomarseille.",
        "importance": 0.8,
        "emotions": ["joy"],
        "messages": [0],
    }
    async with connected(tmp_path) as client:
        assert "observe" not in {tool.name for tool in (await client.list_tools()).tools}
        told = await call_tool(client, "observe", session_id="s", messages=messages, memories=[memory], title="A talk")
        assert (told["new"], told["position"], told["last_key"], len(told["ids"])) == (2, 0, "k2", 2)
        assert sum(told["redacted"].values()) == 1
        [remembered] = told["memories"]
        again = await call_tool(
            client, "observe", session_id="s", messages=[*messages, {"role": "user", "text": "Yes"}]
        )
        assert (again["new"], again["known"], again["position"]) == (1, 2, 2)
        assert await call_tool(client, "observe", session_id="s") == {"new": 0, "last_key": "k2"}
        answer = await call_tool(client, "recall", query="Where does Zoé live?", format="memories", details=True)
        assert [one["id"] for one in answer["memories"]] == [remembered["id"]]
        assert answer["memories"][0]["provenance"]["session_id"] == "s"
        assert "is not an ISO date" in await tool_error(
            client, "observe", {"session_id": "s", "messages": [{"role": "user", "text": "x", "when": "?"}]}
        )
        gone = await call_tool(client, "forget", ids=[remembered["id"], again["ids"][0]], wait=True)
        assert gone == {"erased": [remembered["id"], again["ids"][0]], "messages": 2}
        assert found_in(tmp_path, ["Xylomarseille", "ghp_"]) == {}
        assert (await call_tool(client, "observe", session_id="s", messages=messages))["new"] == 0
    assert [text for _, _, text in kept(tmp_path)] == ["How lovely"]


async def test_no_being_sees_or_changes_what_another_observed(common_dir: Path) -> None:
    """spec P1"""
    message = {"role": "user", "text": HARBOUR, "key": "k"}
    async with hosted(common_dir, being="observed") as ada:
        [id_] = (await call_tool(ada, "observe", session_id="s", messages=[message]))["ids"]
    async with hosted(common_dir, being="bob") as bob:
        assert await call_tool(bob, "observe", session_id="s") == {"new": 0}
        assert await call_tool(bob, "forget", ids=[id_]) == {"erased": [], "missing": [id_]}
        assert (await call_tool(bob, "observe", session_id="s", messages=[message]))["new"] == 1
    assert kept(common_dir, "observed") == kept(common_dir, "bob") == [("s", "user", HARBOUR)]


# --- the command


def test_a_hook_feeds_the_history_and_gets_back_what_comes_to_mind(data_dir: Path, tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", ("user", HARBOUR), ("assistant", [{"type": "text", "text": "How lovely"}]))
    about = {"session_id": "s", "transcript_path": str(path), "cwd": str(tmp_path)}
    stop = about | {"hook_event_name": "Stop", "stop_hook_active": False}
    prompt = about | {"hook_event_name": "UserPromptSubmit", "prompt": "Where by the harbour do I live?"}
    assert run(data_dir, "observe", "--strict", "--timeout", "60", given=stop) == (0, "", "")
    assert run(data_dir, "observe", "--strict", "--recall", given=prompt) == (0, "", "")
    memory = {"session_id": "s", "memories": [{"text": f"Zoé said: {HARBOUR}.", "importance": 0.8}]}
    assert run(data_dir, "observe", "--strict", given=memory) == (0, "", "")
    code, recalled, errors = run(data_dir, "observe", "--strict", "--recall", given=prompt | {"prompt_id": "p2"})
    assert (code, errors) == (0, "")
    assert "<memory>\n" in recalled
    assert HARBOUR in recalled
    assert run(data_dir, "observe", "--strict", given=stop) == (0, "", "")
    assert kept(data_dir) == [
        ("s", "user", HARBOUR), ("s", "assistant", "How lovely"), ("s", "user", prompt["prompt"]),
    ]  # fmt: skip
    assert rows(data_dir / "memory.db", "SELECT DISTINCT interface FROM sessions") == [("claude-code",)]
    assert rows(data_dir / "memory.db", "SELECT DISTINCT client FROM messages") == [("madeleine observe",)]


def test_texts_and_lists_of_messages_are_kept_too(data_dir: Path) -> None:
    messages = [{"role": "assistant", "text": "Hello", "speaker": "Bob"}]
    assert run(data_dir, "observe", "--role", "user", "--session", "s", "--strict", given="Hi\n") == (0, "", "")
    assert run(data_dir, "observe", "--session", "s", "--strict", given=messages) == (0, "", "")
    code, _, errors = run(data_dir, "observe", "--session", "s", "--strict", given=[{"role": "robot", "text": "x"}])
    assert (code, "messages.0.role" in errors) == (1, True)
    assert kept(data_dir) == [("s", "user", "Hi"), ("s", "assistant", "Hello")]


def test_who_may_only_read_keeps_nothing_and_still_recalls(data_dir: Path) -> None:
    memory = {"session_id": "s", "memories": [{"text": HARBOUR, "importance": 0.8}]}
    assert run(data_dir, "observe", "--strict", "--timeout", "60", given=memory)[0] == 0
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Where is the harbour?"}
    code, recalled, errors = run(data_dir, "observe", "--recall", given=prompt, MADELEINE_READ_ONLY="true")
    assert (code, HARBOUR in recalled) == (0, True)
    assert "observe" in errors
    assert kept(data_dir) == []


@pytest.mark.parametrize(
    "given", ["", "no JSON", "[]", '{"hook_event_name": "Stop"}', "\ud83d".encode(errors="replace").decode()]
)
def test_what_cannot_be_observed_is_said_and_the_agent_goes_on(data_dir: Path, given: str) -> None:
    code, said, errors = run(data_dir, "observe", given=given)
    assert (code, said) == (0, "")
    assert errors.startswith("madeleine: ")
    assert "Traceback" not in errors
    assert hosts_of(data_dir) == []


def test_a_memory_that_cannot_be_had_ends_no_turn(tmp_path: Path) -> None:
    """The data directory is a file; the settings are wrong; and nobody closes the pipe."""
    (tmp_path / "file").write_text("")
    stop = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Hi"}
    code, said, errors = run(tmp_path / "file", "observe", "--recall", given=stop)
    assert (code, said, errors.startswith("madeleine: ")) == (0, "", True)
    with no_host_left(tmp_path / "data"):
        code, said, errors = run(tmp_path / "data", "observe", given=stop, MADELEINE_COLOUR="red")
        assert (code, said) == (0, "")
        assert "MADELEINE_COLOUR" in errors
        with subprocess.Popen(
            [*COMMAND, "observe", "--timeout", "0.2"],
            env=environment(tmp_path / "data"), cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.wait(timeout=DEADLOCK_S) == 0
            assert process.stderr
            assert b"within 0.2 s" in process.stderr.read()


def test_hooks_of_several_agents_at_once_lose_nothing(data_dir: Path) -> None:
    started = [
        subprocess.Popen(
            [*COMMAND, "observe", "--role", "user", "--session", f"s{n % 2}", "--strict", "--timeout", "60"],
            env=environment(data_dir), cwd=ROOT, stdin=subprocess.PIPE,
        )
        for n in range(6)
    ]  # fmt: skip
    for n, process in enumerate(started):
        assert process.stdin
        process.stdin.write(f"message {n}".encode())
        process.stdin.close()
    assert [process.wait(timeout=DEADLOCK_S) for process in started] == [0] * 6
    assert sorted(text for _, _, text in kept(data_dir)) == [f"message {n}" for n in range(6)]


def test_a_call_that_is_made_again_after_its_host_died_keeps_nothing_twice(data_dir: Path) -> None:
    """The forwarder asks again; the answer may count what was kept the first time as known."""
    with asking(data_dir) as asker:
        for n in range(20):
            asker.call(n, "observe", session_id="s", messages=[{"role": "user", "text": f"message {n}"}])
        asker.wait_for(5)
        for pid in hosts_of(data_dir):
            subprocess.run(["kill", "-9", str(pid)], check=True)
        answers = asker.wait_for(20)
    assert [one for one in answers if "error" in one or one["result"].get("isError")] == []
    assert sorted(text for _, _, text in kept(data_dir)) == sorted(f"message {n}" for n in range(20))


# --- exports


@pytest.mark.slow
def test_exports_are_imported_once_whatever_they_come_in(data_dir: Path, tmp_path: Path) -> None:
    ours = [
        claude(("human", HARBOUR), ("assistant", "How lovely")),
        {"title": "Broken", "mapping": 3},
        claude(uuid="e"),
    ]
    theirs = [chatgpt(node("a", None, "user", "Hi"), node("b", "a", "assistant", "Hello"))]
    (tmp_path / "conversations.json").write_text("\ufeff" + json.dumps(ours), encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("out/conversations-000.json", json.dumps(theirs))
    files = [str(tmp_path / "conversations.json"), str(tmp_path / "export.zip")]
    code, said, errors = run(data_dir, "import", *files)
    assert said.splitlines()[:3] == [
        "Claude, 1 file: 2 messages of 1 conversation new.", "  Not taken: 1 conversations without a message.",
        "ChatGPT, 1 file: 2 messages of 1 conversation new.",
    ]  # fmt: skip
    assert (code, "conversation 2 ('Broken'): its mapping is a number, not an object" in errors) == (1, True)
    assert "1 file of no known shape left out: user.json" in errors
    assert kept(data_dir) == [
        ("c-1", "user", HARBOUR), ("c-1", "assistant", "How lovely"), ("g-1", "user", "Hi"),
        ("g-1", "assistant", "Hello"),
    ]  # fmt: skip
    sessions = "SELECT session_id, title, interface, watched FROM sessions ORDER BY session_id"
    assert rows(data_dir / "memory.db", sessions) == [
        ("c-1", "The harbour", "claude.ai", 2), ("g-1", "The harbour", "chatgpt.com", 2),
    ]  # fmt: skip
    code, said, _ = run(data_dir, "import", files[1])
    assert (code, said) == (3, "ChatGPT, 1 file: 2 messages here already.\nNothing was new for 'ada'.\n")
    code, said, _ = run(data_dir, "import", files[1], "--remember", being="bob")
    assert (code, kept(data_dir, "bob")) == (0, [("g-1", "user", "Hi"), ("g-1", "assistant", "Hello")])
    assert rows(data_dir / "memory.db", "SELECT watched FROM sessions WHERE being_id = 'bob'") == [(0,)]


@pytest.mark.slow
def test_a_later_file_that_is_no_export_hides_nothing_of_the_earlier_ones(data_dir: Path, tmp_path: Path) -> None:
    good, empty, bad = (str(tmp_path / name) for name in ("good.json", "empty.json", "bad.json"))
    Path(good).write_text(json.dumps([claude(("human", HARBOUR)), {"title": "Broken", "mapping": 3}]))
    Path(empty).write_text("[]")
    Path(bad).write_text('{"hello": "world"}')
    code, said, errors = run(data_dir, "import", good, empty, bad)
    assert (code, said.splitlines()[0]) == (1, "Claude, 1 file: 1 message of 1 conversation new.")
    assert f"left out {good}, conversation 2 ('Broken')" in errors
    assert "2 files of no known shape left out: empty.json, bad.json" in errors
    assert run(data_dir, "import", bad)[:2] == (2, "")


@pytest.mark.slow
async def test_an_import_beside_a_running_host_is_there_at_once(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps([claude(("human", HARBOUR))]))
    async with hosted(data_dir) as client:
        await call_tool(client, "recall", query="harbour")
        assert run(data_dir, "import", str(tmp_path / "c.json"))[0] == 0
        assert await call_tool(client, "observe", session_id="c-1") == {"new": 0, "last_key": "c-1-0"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: [Errno 2]"),
        (b"", "1 file of no known shape left out: export. Known are: Claude Code, Codex"),
        (b'[{"chat_messages": "u"', "it ends too early after 22 characters"),
        (b'{"mapping": "\xff"}', "is not text in UTF-8"),
        (b'{"hello": "world"}', "of no known shape"),
        (b"PK\x05\x06" + b"\x00" * 18, "holds no files"),
        (b"SQLite format 3\x00torn", "is a database that cannot be read"),
    ],
)
def test_a_file_that_is_no_export_is_named(common_dir: Path, tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "export"
    if content is not None:
        file.write_bytes(content)
    code, _, errors = run(common_dir, "import", str(file))
    assert code == 2
    assert "madeleine: " in errors
    assert file.name in errors
    assert said in errors
