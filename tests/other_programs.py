"""Small stores of other programs, in the shapes that these write: each was compared with what the program itself wrote,
in the version that stands beside it, or with its source."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.chat_exports import chatgpt, claude, node

SESSION = "0b3c5a7e-1111-4222-8333-944455556666"
AT = "2026-03-01T12:00:00.000Z"
FILE_TIME = 1_772_366_400
"""2026-03-01T12:00:00Z, of files whose contents have no time."""


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (FILE_TIME, FILE_TIME))
    return path


def json_file(path: Path, content: Any) -> Path:
    return write(path, json.dumps(content))


def lines_file(path: Path, entries: Iterable[Any]) -> Path:
    return write(path, "".join(f"{json.dumps(entry, separators=(',', ':'))}\n" for entry in entries))


def database(path: Path, script: str, rows: Iterable[tuple[str, tuple[Any, ...]]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        for sql, values in rows:
            connection.execute(sql, values)
        connection.commit()
    return path


# --- chats


def claude_line(type_: str, content: Any, uuid: str, **more: Any) -> dict[str, Any]:
    """Claude Code 2.1."""
    return {
        "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/home/ada/harbour",
        "sessionId": SESSION, "version": "2.1.330", "gitBranch": "main", "type": type_,
        "message": {"role": type_, "content": content}, "uuid": uuid, "timestamp": AT,
    } | more  # fmt: skip


def claude_code(home: Path) -> Path:
    """A session with a tool, its subagent, and the program's own notes."""
    folder = home / ".claude/projects/-home-ada-harbour"
    lines_file(
        folder / f"{SESSION}.jsonl",
        [
            {"type": "summary", "summary": "The crane at pier 4", "leafUuid": "u9"},
            {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
            claude_line("user", "Which crane stands at pier 4?", "u1"),
            claude_line("assistant", [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}], "u2"),
            claude_line("user", [{"type": "tool_result", "tool_use_id": "t", "content": "red"}], "u3"),
            claude_line("assistant", [{"type": "text", "text": "The red one."}], "u4"),
        ],
    )
    lines_file(
        folder / SESSION / "subagents/agent-7.jsonl",
        [claude_line("user", "Look for cranes", "s1", isSidechain=True, agentId="7")],
    )
    write(folder / "memory/MEMORY.md", "# Memory\n\n- [Tests](tests.md) — how to run them\n")
    note = "---\nname: Tests\ndescription: how to run them\ntype: feedback\n---\n\nRun the tests with make test.\n"
    return write(folder / "memory/tests.md", note).parents[2]


def codex(home: Path) -> Path:
    """Codex 0.46 to 0.65: what is said is there as an event and as an item."""

    def line(type_: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": AT, "type": type_, "payload": payload}

    def item(role: str, kind: str, text: str) -> dict[str, Any]:
        return line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])

    return lines_file(
        home / ".codex/sessions/2026/03/01/rollout-2026-03-01T12-00-00-019a2d7a.jsonl",
        [
            line(
                "session_meta", id="019a2d7a", timestamp=AT, cwd="/home/ada/harbour", originator="codex_cli",
                cli_version="0.65.0", source="cli", instructions=None, git={},
            ),
            item("user", "input_text", "<environment_context>\n  <cwd>/home/ada</cwd>\n</environment_context>"),
            line("turn_context", cwd="/home/ada/harbour", model="gpt-5-codex"),
            item("user", "input_text", "Rename the harbour module."),
            line("event_msg", type="user_message", message="Rename the harbour module.", kind="plain"),
            line("response_item", type="function_call", name="shell", arguments="{}", call_id="c"),
            line("response_item", type="function_call_output", call_id="c", output="done"),
            line("event_msg", type="agent_message", message="It is called port now."),
            item("assistant", "output_text", "It is called port now."),
        ],
    )  # fmt: skip


def codex_before_events(home: Path) -> Path:
    """Codex until 0.40: bare items without a time."""
    content = [{"type": "input_text", "text": "Which port?"}]
    return lines_file(
        home / ".codex/sessions/rollout-2025-05-07-5973b6c0.jsonl",
        [
            {"id": "5973b6c0", "timestamp": "2025-05-07T17:24:21.123Z", "instructions": None, "git": {}},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": content},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "8765."}]},
        ],
    )


def gemini(home: Path) -> Path:
    """@google/gemini-cli-core 0.61: lines that add, replace, go back and set."""

    def message(id_: str, type_: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"id": id_, "timestamp": AT, "type": type_, "content": content} | more

    return lines_file(
        home / ".gemini/tmp/harbour/chats/session-2026-03-01T12-00-abcd1234.jsonl",
        [
            {"sessionId": "abcd1234-x", "projectHash": "h", "startTime": AT, "lastUpdated": AT, "kind": "main"},
            message("m0", "user", [{"text": "<session_context>\nToday is Sunday."}]),
            message("m1", "user", [{"text": "When does the ferry leave?"}]),
            message("m2", "gemini", "At noon.", toolCalls=[{"id": "t", "name": "search"}]),
            message("m3", "user", "A slip"),
            {"$rewindTo": "m3"},
            message("m2", "gemini", [{"text": "Hm", "thought": True}, {"text": "At one."}]),
            message("m4", "info", "Update available"),
            {"$set": {"summary": "The ferry", "directories": ["/home/ada/harbour"]}},
        ],
    )


def cursor(home: Path) -> Path:
    """Cursor 2: a transcript without times."""
    content = [{"type": "text", "text": "<user_query>\nPaint the quay\n</user_query>"}]
    return lines_file(
        home / ".cursor/projects/harbour/agent-transcripts/c-1/c-1.jsonl",
        [
            {"role": "user", "message": {"content": content}},
            {"role": "assistant", "message": {"content": [{"type": "tool_use", "name": "Read", "input": {}}]}},
            {"role": "assistant", "message": {"content": [{"type": "text", "text": "It is blue now."}]}},
        ],
    )


def cursor_database(home: Path) -> Path:
    """Cursor 0.50: conversations with their messages as entries of their own, and older ones with them inside."""
    newer: dict[str, Any] = {"composerId": "k-1", "name": "The quay", "createdAt": 1_772_366_400_000}
    newer["fullConversationHeadersOnly"] = [{"bubbleId": f"b{n}", "type": 1 + n % 2} for n in range(3)]
    asked = ("How long is the quay?", "", "And how wide?")
    bubbles: list[dict[str, Any]] = [{"text": text, "toolFormerData": {}} for text in asked]
    conversation = [{"type": 1, "bubbleId": "o", "text": "Ahoy"}]
    older: dict[str, Any] = {"composerId": "k-0", "name": None, "conversation": conversation}
    entries = {"composerData:k-1": newer, "composerData:k-0": older, "messageRequestContext:k-1": {}} | {
        f"bubbleId:k-1:b{n}": {"_v": 3, "type": 1 + n % 2, "bubbleId": f"b{n}"} | bubble
        for n, bubble in enumerate(bubbles)
    }
    path = database(
        home / ".config/Cursor/User/globalStorage/state.vscdb",
        "CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);"
        "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);",
        (("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, json.dumps(value))) for key, value in entries.items()),
    )
    os.utime(path, (FILE_TIME, FILE_TIME))
    return path


def chatgpt_export(folder: Path) -> Path:
    nodes = [node("a", None, "user", "Hi"), node("b", "a", "assistant", "Hello")]
    json_file(folder / "conversations-000.json", [chatgpt(*nodes)])
    json_file(folder / "user.json", {"id": "u", "email": "ada@example.org", "chatgpt_plus_user": True})
    return write(folder / "chat.html", "<html></html>").parent


def claude_export(folder: Path) -> Path:
    """As of November 2026, with projects in files of their own."""
    json_file(folder / "conversations.json", [claude(("human", "Where is the harbour?"), ("assistant", "South."))])
    json_file(folder / "users.json", [{"uuid": "a-1", "full_name": "Ada", "email_address": "ada@example.org"}])
    memories = {"conversations_memory": "**Work**\n\nAda runs the harbour office.", "account_uuid": "a-1"}
    json_file(folder / "memories.json", [memories | {"project_memories": {"p-1": "The quay is painted blue."}}])
    project = {"uuid": "p-1", "name": "Quay", "description": "", "prompt_template": "Answer in metres.", "docs": []}
    project |= {"created_at": AT, "updated_at": AT}
    document = {"uuid": "d-1", "filename": "plan.md", "content": "- The quay is 80 metres long.", "created_at": AT}
    return json_file(folder / "projects/p-1.json", project | {"docs": [document]}).parents[1]


def claude_manifest(folder: Path) -> Path:
    files = [{"name": f"{name}-000.zip", "url": f"https://example.org/{name}-000.zip?x=1"} for name in ("a", "b")]
    return json_file(folder / "manifest-9d86139e.json", {"version": 1, "files": files})


# --- memories


def knowledge_graph(path: Path) -> Path:
    """@modelcontextprotocol/server-memory 2026.8.31."""
    entries = [
        {"type": "entity", "name": "Ada_Lovelace", "entityType": "person",
         "observations": ["Prefers tea over coffee", "Lives at the harbour"]},
        {"type": "entity", "name": "Empty", "entityType": "thing", "observations": []},
        {"type": "relation", "from": "Ada_Lovelace", "to": "Analytical Engine", "relationType": "works_on"},
    ]  # fmt: skip
    return write(path, "\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries))


def mem0(path: Path) -> Path:
    """mem0ai 2.2.1, `get_all`."""
    entry = {
        "id": "3a77a208-8eaa-49ba-8237-fbbd87ed785f", "memory": "I am allergic to peanuts.",
        "hash": "2d7817f74361e218ef03df5ebf036d71", "metadata": {"category": "health"},
        "created_at": "2026-03-01T07:16:05.062283+00:00", "updated_at": "2026-03-01T07:16:05.062283+00:00",
        "user_id": "ada", "role": "user",
    }  # fmt: skip
    return json_file(path, {"results": [entry, {"id": "x", "memory": "", "metadata": None}]})


def mem0_history(home: Path) -> Path:
    """mem0ai 2.2.1."""
    rows = [
        ("1", "a", None, "Ada lives in Paris.", "ADD", "2026-01-01T00:00:00+00:00", None, 0),
        ("2", "a", "Ada lives in Paris.", "Ada lives in Rome.", "UPDATE", "2026-01-01T00:00:00+00:00",
         "2026-03-01T00:00:00+00:00", 0),
        ("3", "b", None, "Gone.", "ADD", "2026-01-01T00:00:00+00:00", None, 0),
        ("4", "b", "Gone.", None, "DELETE", "2026-01-01T00:00:00+00:00", None, 1),
    ]  # fmt: skip
    return database(
        home / ".mem0/history.db",
        "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,"
        "created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);"
        "CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT, name TEXT,"
        "created_at DATETIME);",
        (("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, 'user')", row) for row in rows),
    )


def basic_memory(home: Path) -> Path:
    """basic-memory 0.24.1."""
    note = (
        "---\ntitle: Harbour Crane\ntype: note\npermalink: harbour-crane\ntags:\n- harbour\n"
        "created: '2026-03-01T12:00:00+00:00'\n---\n\n# Harbour Crane\n\nIt stands at pier 4.\n\n## Observations\n"
        "- [colour] The crane is red #paint (seen in March)\n- [ ] grease it\n\n## Relations\n"
        "- belongs_to [[Harbour Office]]\n- [[Quay]]\n"
    )
    return write(home / "basic-memory/harbour-crane.md", note).parent


def claude_mem(home: Path) -> Path:
    """claude-mem 13.25.3."""
    epoch = 1_772_366_400_000
    rows: list[tuple[str, tuple[Any, ...]]] = [
        ("INSERT INTO sdk_sessions VALUES (1, ?, 'mem-1', 'harbour', ?, ?)", (SESSION, AT, epoch)),
        (
            "INSERT INTO observations VALUES (1, 'mem-1', 'harbour', NULL, 'bugfix', 'The crane stopped', 'sub', ?, "
            "'A fuse was blown; it is replaced.', ?, '[]', '[]', 1, ?, ?)",
            ('["A fuse was blown"]', '["gotcha"]', AT, epoch),
        ),
        (
            "INSERT INTO session_summaries VALUES (1, 'mem-1', 'harbour', 'Repair the crane', 'The fuse box', "
            "'Fuses of pier 4 are in the shed.', 'The crane runs.', '', '', '', NULL, 1, ?, ?)",
            (AT, epoch),
        ),
        (
            "INSERT INTO user_prompts VALUES (1, 1, ?, 1, 'Which crane stands at pier 4?', ?, ?)",
            (SESSION, AT, epoch),
        ),
        ("INSERT INTO user_prompts VALUES (2, 1, ?, 2, '/clear', ?, ?)", (SESSION, AT, epoch)),
    ]
    return database(
        home / ".claude-mem/claude-mem.db",
        "CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL,"
        "memory_session_id TEXT UNIQUE, project TEXT NOT NULL, started_at TEXT NOT NULL, started_at_epoch INTEGER);"
        "CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,"
        "project TEXT NOT NULL, text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT,"
        "concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER, created_at TEXT NOT NULL,"
        "created_at_epoch INTEGER NOT NULL);"
        "CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,"
        "project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT,"
        "files_read TEXT, files_edited TEXT, notes TEXT, prompt_number INTEGER, created_at TEXT NOT NULL,"
        "created_at_epoch INTEGER NOT NULL);"
        "CREATE TABLE user_prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, session_db_id INTEGER,"
        "content_session_id TEXT NOT NULL, prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL,"
        "created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);",
        rows,
    )


def mcp_memory_service(home: Path) -> Path:
    """mcp-memory-service 12.4.0: a memory with its later version, and a deleted one."""
    rows = [
        ("h1", "Ada prefers short answers.", "preference,style", "observation", None, None),
        ("h2", "The harbour office moved to pier 4.", "harbour", "note", None, "h4"),
        ("h3", "To be deleted.", "x", "note", 1_772_366_401.5, None),
        ("h4", "The harbour office moved to pier 7.", "harbour", "note", None, None),
    ]
    return database(
        home / ".local/share/mcp-memory/sqlite_vec.db",
        "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL,"
        "content TEXT NOT NULL, tags TEXT, memory_type TEXT, metadata TEXT, created_at REAL, updated_at REAL,"
        "created_at_iso TEXT, updated_at_iso TEXT, deleted_at REAL DEFAULT NULL, store TEXT DEFAULT 'default',"
        "parent_id TEXT, version INTEGER DEFAULT 1, confidence REAL DEFAULT 1.0, last_accessed INTEGER,"
        "superseded_by TEXT, embedding_pending INTEGER NOT NULL DEFAULT 0); PRAGMA writable_schema = ON;",
        [
            (
                # Its vectors lie in a table of an extension that nobody else has.
                "INSERT INTO sqlite_master VALUES ('table', 'memory_embeddings', 'memory_embeddings', 0, ?)",
                ("CREATE VIRTUAL TABLE memory_embeddings USING vec0(content_embedding FLOAT[384])",),
            ),
        ]
        + [
            (
                "INSERT INTO memories (content_hash, content, tags, memory_type, metadata, created_at, deleted_at,"
                "superseded_by) VALUES (?, ?, ?, ?, '{}', 1772366400.25, ?, ?)",
                row,
            )
            for row in rows
        ],
    )


def markdown(folder: Path) -> Path:
    text = (
        "# The harbour\n\nThe harbour was built in 1880.\n\n## People\n\n- Ada: runs the office\n"
        "- Bob: drives the crane\n\n```\n# no heading\n```\n"
    )
    write(folder / "harbour.md", text)
    write(folder / "2026-03-02.md", "The ferry was late.\n")
    write(folder / ".obsidian/app.md", "hidden")
    return write(folder / "photo.png", b"\x89PNG").parent


def whole_home(home: Path) -> Path:
    """What `madeleine move-in` finds."""
    for make in (claude_code, codex, gemini, cursor, cursor_database, mem0_history, basic_memory, claude_mem):
        make(home)
    mcp_memory_service(home)
    knowledge_graph(home / ".npm/_npx/1f/node_modules/@modelcontextprotocol/server-memory/dist/memory.jsonl")
    return home


def many_transcripts(folder: Path, megabytes: int, *, session_bytes: int = 4_000_000) -> int:
    """Transcripts of Claude Code as they are at work: most of their bytes are results of tools. The number of messages
    that somebody said."""
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "line of a file\n" * 400}]
    spoken = written = number = 0
    while written < megabytes * 1_000_000:
        number += 1
        session = f"{number:08x}-1111-4222-8333-944455556666"
        path = folder / "-home-ada-harbour" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for place in range(session_bytes):
                said = f"{number}-{place}: the crane at pier {place % 40} lifts {place * number} tonnes. " * 4
                for line in (
                    claude_line("user", said, f"u{place}", sessionId=session),
                    claude_line("assistant", [{"type": "text", "text": said}], f"a{place}", sessionId=session),
                    claude_line("user", result, f"r{place}", sessionId=session),
                ):
                    file.write(f"{json.dumps(line)}\n")
                spoken += 2
                if file.tell() > session_bytes:
                    break
            written += file.tell()
    return spoken
