"""What ChatGPT and Claude send on request. Conversations become chat history; what Claude has noted of its user, and
the instructions and documents of its projects, become memories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from madeleine.memory.moving.sources.exported_conversations import (
    UnreadableConversationReport,
    read_exported_conversations,
)
from madeleine.memory.moving.sources.json_stream import iterate_json_array
from madeleine.memory.moving.sources.markdown import import_items_from_markdown
from madeleine.memory.moving.sources.shapes import parse_json_or_none
from madeleine.memory.moving.sources.values import (
    FileShape,
    FileToImport,
    ImportFileFormat,
    ImportFileUnreadable,
    ImportItem,
    SkippedContent,
    UnreadableImportEntryReport,
    first_iso_time_from_json,
    json_objects_in_list,
    label_from_json,
    labels_from_json,
    storable_text_if_json_string,
)

_ZIP_FILE_NAME_PATTERN = re.compile(r"[\w.\-]+\.zip", re.IGNORECASE)
_CONVERSATIONS_FILE_NAME_PATTERN = re.compile(r"conversations(?:[-_]\d+)?\.json")
"""ChatGPT splits a large export into several."""
_KEYS_OF_ACCOUNT_FILES = ({"full_name", "email_address"}, {"email", "chatgpt_plus_user"}, {"phone_number", "email"})


def read_json_elements(file: FileToImport) -> Iterator[Any]:
    """The elements of the array in a JSON file, or the one object that it is. Raises `ImportFileUnreadable`."""
    try:
        yield from iterate_json_array(file.text_chunks())
    except ValueError as error:
        raise ImportFileUnreadable(f"{file.display_path} is not a whole JSON file: {error}") from error


def _read_conversations_file(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    try:
        for found in read_exported_conversations(file.text_chunks(), max_text_chars=max_text_chars):
            if isinstance(found, UnreadableConversationReport):
                title = f" ({found.title[:80]!r})" if found.title else ""
                yield UnreadableImportEntryReport(f"conversation {found.number:,}{title}", found.reason)
            elif found.messages:
                yield found
            else:
                yield SkippedContent("conversations without a message")
    except ValueError as error:
        raise ImportFileUnreadable(f"{file.display_path} is not a whole JSON file: {error}") from error


def _has_conversations_file_name(shape: FileShape) -> bool:
    """An empty export has no keys, and in a damaged one they may be anything."""
    return bool(_CONVERSATIONS_FILE_NAME_PATTERN.fullmatch(shape.name.rpartition("/")[2]))


def _read_claude_memories(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    for element in read_json_elements(file):
        if not isinstance(element, dict):
            yield UnreadableImportEntryReport("memories", "they are no object")
            continue
        yield from import_items_from_markdown(
            storable_text_if_json_string(element.get("conversations_memory")), title=""
        )
        projects = element.get("project_memories")
        texts = projects.values() if isinstance(projects, dict) else []
        for text in texts:
            yield from import_items_from_markdown(storable_text_if_json_string(text), title="")
        for kept in json_objects_in_list(element.get("memory_files")):
            name = label_from_json(kept.get("path") or kept.get("name") or kept.get("file_name"))
            content = storable_text_if_json_string(kept.get("content") or kept.get("text"))
            yield from import_items_from_markdown(
                content, title=name, when=first_iso_time_from_json(kept.get("updated_at"))
            )


def _read_claude_projects(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    for number, project in enumerate(read_json_elements(file), start=1):
        if not isinstance(project, dict):
            yield UnreadableImportEntryReport(f"project {number:,}", "it is no object")
            continue
        name, when = (
            label_from_json(project.get("name")),
            first_iso_time_from_json(project.get("updated_at"), project.get("created_at")),
        )
        for field in ("description", "prompt_template"):
            yield from import_items_from_markdown(
                storable_text_if_json_string(project.get(field)), title=name, when=when
            )
        for document in json_objects_in_list(project.get("docs")):
            title, written = (
                label_from_json(document.get("filename")),
                first_iso_time_from_json(document.get("created_at")) or when,
            )
            content = storable_text_if_json_string(document.get("content"))
            yield from import_items_from_markdown(content, title=title, when=written, themes=labels_from_json([name]))


def _skip_account_file(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    yield SkippedContent("files about the account")


def _is_claude_archive_manifest(shape: FileShape) -> bool:
    is_small_object = shape.head.lstrip().startswith(b"{") and parse_json_or_none(shape.head) is not None
    return (
        is_small_object
        and shape.suffix == ".json"
        and bool(_ZIP_FILE_NAME_PATTERN.search(shape.head.decode("utf-8", "replace")))
    )


def _report_archives_named_in_manifest(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    names = sorted(set(_ZIP_FILE_NAME_PATTERN.findall(file.head().decode("utf-8", "replace"))))
    yield UnreadableImportEntryReport(
        "the list of archives",
        f"it only names the {len(names)} archives of the export: download them by the links in it, and import them: "
        + ", ".join(names[:20]),
    )


CHAT_EXPORT_FORMATS = (
    ImportFileFormat(
        "Claude memories",
        lambda shape: bool(shape.keys & {"conversations_memory", "project_memories"}),
        _read_claude_memories,
        is_part=True,
    ),
    ImportFileFormat(
        "Claude projects",
        lambda shape: {"uuid", "name"} <= shape.keys and bool(shape.keys & {"prompt_template", "docs"}),
        _read_claude_projects,
        is_part=True,
    ),
    ImportFileFormat(
        "account",
        lambda shape: any(keys <= shape.keys for keys in _KEYS_OF_ACCOUNT_FILES),
        _skip_account_file,
        is_part=True,
    ),
    ImportFileFormat("ChatGPT", lambda shape: "mapping" in shape.keys, _read_conversations_file),
    ImportFileFormat("Claude", lambda shape: "chat_messages" in shape.keys, _read_conversations_file),
    ImportFileFormat("conversations", _has_conversations_file_name, _read_conversations_file, is_part=True),
    ImportFileFormat("Claude manifest", _is_claude_archive_manifest, _report_archives_named_in_manifest, is_part=True),
)
