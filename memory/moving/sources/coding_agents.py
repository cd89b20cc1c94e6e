"""Transcripts of Claude Code, Codex, Gemini CLI and Cursor: what was said, without tools, thoughts and subagents.

Shapes: Claude Code 2.1, Codex 0.4 to 0.65, @google/gemini-cli-core 0.61, Cursor 0.50 to 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from madeleine.memory.chat import ChatRole
from madeleine.memory.moving.sources.conversations import (
    ImportedConversationSplitter,
    project_of_directory,
    session_title_prefixed_with_project,
    text_of_content_blocks,
)
from madeleine.memory.moving.sources.shapes import parse_json_or_none, read_numbered_json_object_lines
from madeleine.memory.moving.sources.values import (
    MAX_IMPORTED_LINE_BYTES,
    FileShape,
    FileToImport,
    ImportFileFormat,
    ImportItem,
    JsonObject,
    SkippedContent,
    UnreadableImportEntryReport,
    json_objects_in_list,
    label_from_json,
    moment_from_json,
    storable_text_if_json_string,
    value_of_type_or_empty,
)
from madeleine.memory.watch.transcripts import TranscriptReader, text_without_program_additions

CLAUDE_CODE_INTERFACE_NAME, CODEX_INTERFACE = "claude-code", "codex"
GEMINI_INTERFACE, CURSOR_INTERFACE = "gemini-cli", "cursor"
_SKIP_REASON_TOOLS_AND_THOUGHTS = "tool calls, their results and thoughts"
_SKIP_REASON_UNSPOKEN_LINES = "lines that nobody said"
_SKIP_REASON_SUBAGENT_MESSAGES = "messages of subagents"

# --- Claude Code --------------------------------------------------------------------------------------------------

_SUBAGENT_LINE_PATTERN = re.compile(rb'"isSidechain"\s*:\s*true')
_USER_OR_ASSISTANT_LINE_PATTERN = re.compile(rb'"type"\s*:\s*"(?:user|assistant)"')
_UUID_PATTERN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _is_claude_code_transcript(shape: FileShape) -> bool:
    return any(
        {"sessionId", "type", "uuid"} <= line.keys() or (line.get("type") == "summary" and "leafUuid" in line)
        for line in shape.lines
    )


def _read_claude_code_transcript(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    """The file is named after its session, as hooks name it."""
    stem = file.display_path.rpartition("/")[2].removesuffix(".jsonl")
    parts = ImportedConversationSplitter(
        CLAUDE_CODE_INTERFACE_NAME,
        session_id=stem if _UUID_PATTERN.fullmatch(stem) else "",
        max_text_chars=max_text_chars,
    )
    reader = TranscriptReader()
    title = project = ""
    for number, line in file.numbered_lines():
        if line is None:
            yield UnreadableImportEntryReport(
                f"line {number:,}", f"it has more than {MAX_IMPORTED_LINE_BYTES // 1024 // 1024} MB"
            )
            continue
        message = reader.parse_message(line)
        if message is None:
            if _SUBAGENT_LINE_PATTERN.search(line):
                yield SkippedContent(_SKIP_REASON_SUBAGENT_MESSAGES)
            elif _USER_OR_ASSISTANT_LINE_PATTERN.search(line) and parse_json_or_none(line) is not None:
                yield SkippedContent(_SKIP_REASON_TOOLS_AND_THOUGHTS)
            elif not line.strip():
                continue
            elif not isinstance(entry := parse_json_or_none(line), dict):
                yield UnreadableImportEntryReport(f"line {number:,}", "it is no JSON object")
            else:
                names = (entry.get("customTitle"), entry.get("aiTitle"), entry.get("summary"))
                title = title or next((label for name in names if (label := label_from_json(name))), "")
                yield SkippedContent(_SKIP_REASON_UNSPOKEN_LINES)
            continue
        project = project or project_of_directory(message.directory)
        parts.session_id = parts.session_id or message.session_id or stem
        parts.title = session_title_prefixed_with_project(project, title)
        yield from parts.add_and_yield_full_parts(message.role, message.text, message.key, moment_from_json(message.at))
    yield from parts.take_remaining()


# --- Codex --------------------------------------------------------------------------------------------------------

_CODEX_LINE_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_ROLE_BY_CODEX_EVENT_TYPE: dict[str, ChatRole] = {"user_message": "user", "agent_message": "assistant"}
_CODEX_USER_MESSAGE_EVENT_PATTERN = re.compile(rb'"type"\s*:\s*"user_message"')
_CODEX_INJECTED_CONTEXT_PATTERN = re.compile(r"\s*(?:<[a-z]+(?:_[a-z]+)+>|# AGENTS\.md instructions)")
"""What Codex tells the model in the user's name: an element with an underscore in its name."""


def _is_codex_transcript(shape: FileShape) -> bool:
    first = shape.lines[0] if shape.lines else {}
    is_new = str(first.get("type")) in _CODEX_LINE_TYPES and isinstance(first.get("payload"), dict)
    # Until 2025-09 the first line was the bare meta data.
    return is_new or ({"id", "timestamp", "instructions"} <= first.keys() and "type" not in first)


def _read_codex_transcript(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    """What the user and the agent said is there twice: as an event, in words alone, and as an item for the model. The
    first is taken where there is any."""
    has_events = any(
        line is not None and _CODEX_USER_MESSAGE_EVENT_PATTERN.search(line) for _, line in file.numbered_lines()
    )
    parts = ImportedConversationSplitter(CODEX_INTERFACE, max_text_chars=max_text_chars)
    for found in read_numbered_json_object_lines(file):
        if isinstance(found, UnreadableImportEntryReport):
            yield found
            continue
        number, line = found
        payload = line["payload"] if isinstance(line.get("payload"), dict) else line
        if line.get("type") == "session_meta" or ("instructions" in line and not parts.session_id):
            if "subagent" in value_of_type_or_empty(dict, payload.get("source")):
                yield SkippedContent("conversations of subagents")
                return
            # A forked session repeats the lines of the other one behind its own.
            parts.session_id = parts.session_id or label_from_json(payload.get("id"))
            parts.title = parts.title or project_of_directory(payload.get("cwd"))
            parts.at = parts.at or moment_from_json(payload.get("timestamp"))
            continue
        role, text = _role_and_text_of_codex_line(line, payload, has_events)
        if role and parts.session_id:
            yield from parts.add_and_yield_full_parts(
                role, text, f"line-{number}", moment_from_json(line.get("timestamp"))
            )
        elif not (has_events and payload.get("type") == "message"):
            yield SkippedContent(
                _SKIP_REASON_TOOLS_AND_THOUGHTS
                if line.get("type") in ("response_item", "event_msg")
                else _SKIP_REASON_UNSPOKEN_LINES
            )
    yield from parts.take_remaining()


def _role_and_text_of_codex_line(
    line: JsonObject, payload: JsonObject, has_events: bool
) -> tuple[ChatRole | None, str]:
    if has_events:
        role = _ROLE_BY_CODEX_EVENT_TYPE.get(str(payload.get("type"))) if line.get("type") == "event_msg" else None
        return role, storable_text_if_json_string(payload.get("message"))
    if payload.get("type") != "message" or payload.get("role") not in ("user", "assistant"):
        return None, ""
    text = text_of_content_blocks(payload.get("content"), ("input_text", "output_text", "text"))
    return (None, "") if _CODEX_INJECTED_CONTEXT_PATTERN.match(text) else (payload["role"], text)


# --- Gemini CLI ---------------------------------------------------------------------------------------------------


_ROLE_BY_GEMINI_MESSAGE_TYPE: dict[str, ChatRole] = {"user": "user", "gemini": "assistant"}
_GEMINI_UNSPOKEN_TEXT_PREFIXES = ("<session_context>", "<hook_context>", "/")
"""What the program adds in the user's name, and commands to it."""


def _is_gemini_transcript(shape: FileShape) -> bool:
    return {"sessionId", "projectHash"} <= (shape.lines[0].keys() if shape.lines else shape.keys)


class _GeminiSession:
    """A line adds a message, replaces it by its id, goes back to one, or sets values of the whole. Older sessions are
    one object."""

    def __init__(self) -> None:
        self.values: JsonObject = {}
        self.messages: dict[str, tuple[ChatRole, str, Any]] = {}
        self.left_out: dict[str, str] = {}
        """Reasons by id."""

    def apply_line(self, line: JsonObject) -> None:
        changes = line.get("$set")
        if isinstance(target := line.get("$rewindTo"), str):
            ids = list(self.messages)
            for id_ in ids[ids.index(target) :] if target in ids else ids:
                del self.messages[id_]
        elif isinstance(line.get("id"), str):
            self._keep_message_or_skip_reason(line)
        else:
            values = changes if isinstance(changes, dict) else line
            if values is changes and "messages" in values:
                self.messages.clear()
            self.values |= {name: value for name, value in values.items() if name != "messages"}
            for message in json_objects_in_list(values.get("messages")):
                if isinstance(message.get("id"), str):
                    self._keep_message_or_skip_reason(message)

    def _keep_message_or_skip_reason(self, message: JsonObject) -> None:
        role = _ROLE_BY_GEMINI_MESSAGE_TYPE.get(str(message.get("type")))
        text = text_of_content_blocks(message.get("displayContent") or message.get("content"))
        id_ = label_from_json(message["id"])
        if role and text.strip() and not (role == "user" and text.lstrip().startswith(_GEMINI_UNSPOKEN_TEXT_PREFIXES)):
            self.messages[id_] = (role, text, message.get("timestamp"))
        else:
            self.left_out[id_] = _SKIP_REASON_TOOLS_AND_THOUGHTS if role else _SKIP_REASON_UNSPOKEN_LINES


def _read_gemini_transcript(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    session = _GeminiSession()
    for found in _gemini_json_objects(file):
        if isinstance(found, UnreadableImportEntryReport):
            yield found
        else:
            session.apply_line(found)
    values = session.values
    if values.get("kind") == "subagent":
        yield SkippedContent("conversations of subagents")
        return
    for reason in session.left_out.values():
        yield SkippedContent(reason)
    directories = value_of_type_or_empty(list, values.get("directories"))
    project = project_of_directory(directories[0]) if directories else ""
    parts = ImportedConversationSplitter(
        GEMINI_INTERFACE,
        session_id=label_from_json(values.get("sessionId")),
        title=session_title_prefixed_with_project(project, label_from_json(values.get("summary"))),
        max_text_chars=max_text_chars,
    )
    if session.messages and not parts.session_id:
        yield UnreadableImportEntryReport("line 1", "it names no session")
        return
    for id_, (role, text, at) in session.messages.items():
        yield from parts.add_and_yield_full_parts(role, text, id_, moment_from_json(at))
    yield from parts.take_remaining()


def _gemini_json_objects(file: FileToImport) -> Iterator[JsonObject | UnreadableImportEntryReport]:
    if file.display_path.endswith(".json"):
        text = "".join(file.text_chunks())[: MAX_IMPORTED_LINE_BYTES + 1]
        whole = parse_json_or_none(text) if len(text) <= MAX_IMPORTED_LINE_BYTES else None
        yield (
            whole
            if isinstance(whole, dict)
            else UnreadableImportEntryReport("the file", "it is no whole JSON object of up to 16 MB")
        )
        return
    for found in read_numbered_json_object_lines(file):
        yield found if isinstance(found, UnreadableImportEntryReport) else found[1]


# --- Cursor -------------------------------------------------------------------------------------------------------

_CURSOR_USER_QUERY_PATTERN = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_SELECT_CURSOR_COMPOSERS_SQL = "SELECT key, value FROM cursorDiskKV WHERE key LIKE 'composerData:%' ORDER BY key"
_SELECT_CURSOR_BUBBLE_SQL = "SELECT value FROM cursorDiskKV WHERE key = ?"
_ROLE_BY_CURSOR_BUBBLE_TYPE: dict[Any, ChatRole] = {1: "user", 2: "assistant"}


def _is_cursor_transcript(shape: FileShape) -> bool:
    return bool(shape.lines) and all(
        "role" in line and isinstance(line.get("message"), dict) and "sessionId" not in line for line in shape.lines[:3]
    )


def _read_cursor_transcript(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    """Its lines have no time: that of the file is the nearest there is."""
    folders = file.display_path.split("/")
    project = folders[folders.index("agent-transcripts") - 1] if "agent-transcripts" in folders[1:] else ""
    if "subagents" in folders:
        yield SkippedContent("conversations of subagents")
        return
    session_id = folders[-1].rpartition(".")[0]
    parts = ImportedConversationSplitter(
        CURSOR_INTERFACE, session_id=session_id, title=label_from_json(project), max_text_chars=max_text_chars
    )
    for found in read_numbered_json_object_lines(file):
        if isinstance(found, UnreadableImportEntryReport):
            yield found
            continue
        number, line = found
        text = text_of_content_blocks(value_of_type_or_empty(dict, line.get("message")).get("content"))
        if line.get("role") == "user":
            text = "\n\n".join(_CURSOR_USER_QUERY_PATTERN.findall(text)) or text
        text = text_without_program_additions(text)
        if line.get("role") in ("user", "assistant") and text:
            yield from parts.add_and_yield_full_parts(line["role"], text, f"line-{number}", file.modified_at)
        else:
            yield SkippedContent(_SKIP_REASON_TOOLS_AND_THOUGHTS)
    yield from parts.take_remaining()


def _read_cursor_database(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    for key, value in file.run_sqlite_query(_SELECT_CURSOR_COMPOSERS_SQL):
        composer = parse_json_or_none(value or "")
        composer_id = label_from_json(str(key).partition(":")[2])
        if not isinstance(composer, dict) or not composer_id:
            yield UnreadableImportEntryReport(f"the entry {str(key)[:80]}", "it is no JSON object")
            continue
        parts = ImportedConversationSplitter(
            CURSOR_INTERFACE,
            session_id=composer_id,
            title=label_from_json(composer.get("name")),
            max_text_chars=max_text_chars,
        )
        started = moment_from_json(composer.get("createdAt"))
        for bubble in _cursor_bubbles(file, composer_id, composer):
            role, text = (
                _ROLE_BY_CURSOR_BUBBLE_TYPE.get(bubble.get("type")),
                storable_text_if_json_string(bubble.get("text")),
            )
            if role and text and (bubble_id := label_from_json(bubble.get("bubbleId"))):
                at = moment_from_json(bubble.get("createdAt")) or started or file.modified_at
                yield from parts.add_and_yield_full_parts(role, text, bubble_id, at)
            else:
                yield SkippedContent(_SKIP_REASON_TOOLS_AND_THOUGHTS)
        yield from parts.take_remaining()
        if not parts.message_count:
            yield SkippedContent("conversations without a message")


def _cursor_bubbles(file: FileToImport, composer_id: str, composer: JsonObject) -> Iterator[JsonObject]:
    """Newer ones are entries of their own, older ones stand in the conversation."""
    for header in json_objects_in_list(composer.get("fullConversationHeadersOnly")):
        bubble_id = str(header.get("bubbleId"))
        for (value,) in file.run_sqlite_query(_SELECT_CURSOR_BUBBLE_SQL, f"bubbleId:{composer_id}:{bubble_id}"):
            yield {"bubbleId": bubble_id, "type": header.get("type")} | value_of_type_or_empty(
                dict, parse_json_or_none(value or "")
            )
    yield from json_objects_in_list(composer.get("conversation"))


CODING_AGENT_FORMATS = (
    ImportFileFormat("Claude Code", _is_claude_code_transcript, _read_claude_code_transcript),
    ImportFileFormat("Codex", _is_codex_transcript, _read_codex_transcript),
    ImportFileFormat("Gemini CLI", _is_gemini_transcript, _read_gemini_transcript),
    ImportFileFormat("Cursor", _is_cursor_transcript, _read_cursor_transcript),
    ImportFileFormat("Cursor", lambda shape: shape.has_table("cursorDiskKV", "key", "value"), _read_cursor_database),
)
