"""Other programs' memories: the knowledge graph of the official MCP server, mem0, claude-mem, mcp-memory-service.

Shapes: @modelcontextprotocol/server-memory 2026.8, mem0ai 2.2, claude-mem 13.25, mcp-memory-service 12.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from madeleine.memory.moving.sources.chat_exports import read_json_elements
from madeleine.memory.moving.sources.coding_agents import CLAUDE_CODE_INTERFACE_NAME
from madeleine.memory.moving.sources.conversations import ImportedConversationSplitter
from madeleine.memory.moving.sources.shapes import parse_json_or_none, read_numbered_json_object_lines
from madeleine.memory.moving.sources.values import (
    FileShape,
    FileToImport,
    ImportedStatement,
    ImportFileFormat,
    ImportItem,
    JsonObject,
    SkippedContent,
    UnreadableImportEntryReport,
    first_iso_time_from_json,
    json_objects_in_list,
    label_from_json,
    labels_from_json,
    moment_from_json,
    storable_text_if_json_string,
    value_of_type_or_empty,
)
from madeleine.memory.watch.transcripts import prompt_as_in_transcript, prompt_key_prefix_of_text

# --- the official server's knowledge graph ------------------------------------------------------------------------


def _is_knowledge_graph_entry(entry: JsonObject) -> bool:
    return {"name", "entityType", "observations"} <= entry.keys() or {"from", "to", "relationType"} <= entry.keys()


def _is_knowledge_graph_file(shape: FileShape) -> bool:
    return any(map(_is_knowledge_graph_entry, shape.lines[:3])) or {"entities", "relations"} <= shape.keys


def _read_knowledge_graph(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    """Lines as the server stores them, or the one object that it answers with. It keeps no times."""
    head = file.head().lstrip()
    is_answer = not any(_is_knowledge_graph_entry(entry) for entry in _json_objects_on_first_line(head))
    for place, entry in _entries_from_single_graph_object(file) if is_answer else _entries_from_graph_lines(file):
        if isinstance(entry, UnreadableImportEntryReport):
            yield entry
        elif "relationType" in entry:
            ends = [_entity_name_from_json(entry.get(side)) for side in ("from", "to")]
            if all(ends):
                relation = label_from_json(entry["relationType"]).replace("_", " ")
                yield ImportedStatement(text=f"{ends[0]} {relation} {ends[1]}", actors=tuple(dict.fromkeys(ends)))
            else:
                yield UnreadableImportEntryReport(place, "the relation does not name both of its ends")
        elif name := _entity_name_from_json(entry.get("name")):
            yield from _statements_from_entity_observations(name, entry)
        else:
            yield UnreadableImportEntryReport(place, "it is neither an entity nor a relation")


def _entity_name_from_json(value: Any) -> str:
    """As people write it: "Ada_Lovelace" is Ada Lovelace, and "ada_service" is a name in a program."""
    name = label_from_json(value)
    return name.replace("_", " ") if all(part[:1].isupper() for part in name.split("_")) else name


def _json_objects_on_first_line(head: bytes) -> list[JsonObject]:
    first = parse_json_or_none(head.split(b"\n", 1)[0])
    return [first] if isinstance(first, dict) else []


def _statements_from_entity_observations(name: str, entity: JsonObject) -> Iterator[ImportItem]:
    observations = [
        text
        for value in value_of_type_or_empty(list, entity.get("observations"))
        if (text := storable_text_if_json_string(value))
    ]
    for observation in observations:
        themes = labels_from_json([entity.get("entityType")])
        yield ImportedStatement(text=f"{name}: {observation}", themes=themes, actors=(name,))
    if not observations:
        yield SkippedContent("entities of which nothing was observed")


def _entries_from_graph_lines(file: FileToImport) -> Iterator[tuple[str, JsonObject | UnreadableImportEntryReport]]:
    for found in read_numbered_json_object_lines(file):
        if isinstance(found, UnreadableImportEntryReport):
            yield found.place, found
        else:
            yield f"line {found[0]:,}", found[1]


def _entries_from_single_graph_object(
    file: FileToImport,
) -> Iterator[tuple[str, JsonObject | UnreadableImportEntryReport]]:
    for graph in read_json_elements(file):
        for name in ("entities", "relations"):
            for number, entry in enumerate(
                json_objects_in_list(value_of_type_or_empty(dict, graph).get(name)), start=1
            ):
                yield f"{name}, number {number:,}", entry


# --- mem0 ---------------------------------------------------------------------------------------------------------

_SELECT_MEM0_HISTORY_SQL = """
SELECT memory_id, new_memory, event, created_at, updated_at, is_deleted FROM history ORDER BY memory_id, rowid
"""


def _is_mem0(shape: FileShape) -> bool:
    return {"id", "memory"} <= shape.keys or shape.keys in ({"results"}, {"results", "relations"})


def _read_mem0(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    """What `get_all` answers, or the list in it."""
    for number, entry in enumerate(_mem0_entries(file), start=1):
        text = storable_text_if_json_string(entry.get("memory")) if isinstance(entry, dict) else ""
        if not text:
            yield UnreadableImportEntryReport(f"memory {number:,}", "it has no text")
            continue
        details = value_of_type_or_empty(dict, entry.get("metadata"))
        yield ImportedStatement(
            id=label_from_json(entry.get("id")),
            text=text,
            when=first_iso_time_from_json(entry.get("created_at"), entry.get("updated_at")),
            themes=labels_from_json([*value_of_type_or_empty(list, entry.get("categories")), details.get("category")]),
        )


def _mem0_entries(file: FileToImport) -> Iterator[Any]:
    for element in read_json_elements(file):
        if isinstance(element, dict) and "results" in element:
            yield from value_of_type_or_empty(list, element["results"])
        else:
            yield element


def _read_mem0_history(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    """The last event of each memory tells what it is now."""
    last: tuple[Any, ...] | None = None
    first_at: Any = None
    for row in file.run_sqlite_query(_SELECT_MEM0_HISTORY_SQL):
        if last is not None and row[0] != last[0]:
            yield _import_item_from_mem0_history_row(last, first_at)
            last = None
        if last is not None:
            yield SkippedContent("earlier versions")
        first_at = row[3] if last is None else first_at
        last = row
    if last is not None:
        yield _import_item_from_mem0_history_row(last, first_at)


def _import_item_from_mem0_history_row(row: tuple[Any, ...], first_at: Any) -> ImportItem:
    id_, text, event, created_at, updated_at, is_deleted = row
    if is_deleted or str(event).upper() == "DELETE" or not storable_text_if_json_string(text):
        return SkippedContent("deleted memories")
    when = first_iso_time_from_json(updated_at if str(event).upper() == "UPDATE" else None, created_at, first_at)
    return ImportedStatement(id=label_from_json(id_), text=storable_text_if_json_string(text), when=when)


# --- claude-mem ---------------------------------------------------------------------------------------------------

_OPTIONAL_OBSERVATION_COLUMNS = ("text", "title", "subtitle", "narrative", "facts", "concepts", "type", "project")
_SELECT_CLAUDE_MEM_PROMPTS_SQL = """
SELECT content_session_id, prompt_text, created_at_epoch FROM user_prompts
ORDER BY content_session_id, prompt_number, id
"""


def _read_claude_mem(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    tables = file.sqlite_columns_by_table()
    for row in _rows_as_objects(file, "observations", _OPTIONAL_OBSERVATION_COLUMNS):
        yield _claude_mem_observation(row)
    if "session_summaries" in tables:
        fields = ("project", "request", "investigated", "learned", "completed", "next_steps", "notes")
        for row in _rows_as_objects(file, "session_summaries", fields):
            yield _claude_mem_summary(row)
    if {"content_session_id", "prompt_text"} <= tables.get("user_prompts", frozenset()):
        yield from _claude_mem_prompts(file, max_text_chars)


def _rows_as_objects(file: FileToImport, table: str, optional: tuple[str, ...]) -> Iterator[JsonObject]:
    """Rows in the order of their making, with those of the optional columns that the table has."""
    present = file.sqlite_columns_by_table()[table]
    names = [name for name in (*optional, "id", "created_at_epoch", "created_at") if name in present]
    for values in file.run_sqlite_query(f"SELECT {', '.join(names)} FROM {table} ORDER BY rowid"):
        yield dict(zip(names, values, strict=True))


def _claude_mem_observation(row: JsonObject) -> ImportItem:
    title, subtitle = storable_text_if_json_string(row.get("title")), storable_text_if_json_string(row.get("subtitle"))
    facts = [
        text
        for fact in value_of_type_or_empty(list, parse_json_or_none(row.get("facts") or ""))
        if (text := storable_text_if_json_string(fact))
    ]
    body = (
        storable_text_if_json_string(row.get("narrative"))
        or storable_text_if_json_string(row.get("text"))
        or " ".join(facts)
        or subtitle
    )
    text = ". ".join(dict.fromkeys(part.rstrip(".") if part == title else part for part in (title, body) if part))
    if not text:
        return SkippedContent("observations without a text")
    concepts = labels_from_json(value_of_type_or_empty(list, parse_json_or_none(row.get("concepts") or "")))
    return ImportedStatement(
        id=_claude_mem_id("observation", row),
        text=text,
        when=first_iso_time_from_json(row.get("created_at_epoch"), row.get("created_at")),
        themes=tuple(dict.fromkeys((*labels_from_json([row.get("project"), row.get("type")]), *concepts))),
        category="episodic",
    )


def _claude_mem_summary(row: JsonObject) -> ImportItem:
    parts = [storable_text_if_json_string(row.get(name)) for name in ("request", "completed", "notes", "next_steps")]
    told = [part for part in parts if part] or [storable_text_if_json_string(row.get("investigated"))]
    learned = storable_text_if_json_string(row.get("learned"))
    if not any(told) and not learned:
        return SkippedContent("summaries without a text")
    return ImportedStatement(
        id=_claude_mem_id("summary", row),
        text="\n".join(filter(None, told)) or learned,
        lesson=learned[:1_000] if any(told) else "",
        when=first_iso_time_from_json(row.get("created_at_epoch"), row.get("created_at")),
        themes=labels_from_json([row.get("project")]),
        category="episodic",
    )


def _claude_mem_id(kind: str, row: JsonObject) -> str:
    """Row numbers are those of one machine: the time tells them apart from another's."""
    return f"{kind} {row.get('id')} {row.get('created_at_epoch')}"


def _claude_mem_prompts(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    """Prompts of Claude Code, under the keys that its transcripts give them: what is there already is not doubled."""
    parts = ImportedConversationSplitter(CLAUDE_CODE_INTERFACE_NAME, max_text_chars=max_text_chars)
    earlier: Counter[str] = Counter()
    for session_id, prompt, at in file.run_sqlite_query(_SELECT_CLAUDE_MEM_PROMPTS_SQL):
        if label_from_json(session_id) != parts.session_id:
            yield from parts.take_remaining()
            parts.session_id = label_from_json(session_id)
            earlier.clear()
        text = prompt_as_in_transcript(storable_text_if_json_string(prompt))
        if not text or not parts.session_id:
            yield SkippedContent("prompts to the program")
            continue
        prefix = prompt_key_prefix_of_text(text)
        yield from parts.add_and_yield_full_parts("user", text, f"{prefix}{earlier[prefix]}", moment_from_json(at))
        earlier[prefix] += 1
    yield from parts.take_remaining()


# --- mcp-memory-service -------------------------------------------------------------------------------------------


def _read_mcp_memory_service(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    names = ("content_hash", "content", "tags", "memory_type", "created_at", "deleted_at", "superseded_by")
    present = [name for name in names if name in file.sqlite_columns_by_table()["memories"]]
    for values in file.run_sqlite_query(f"SELECT {', '.join(present)} FROM memories ORDER BY id"):
        row = dict(zip(present, values, strict=True))
        text = storable_text_if_json_string(row.get("content"))
        if row.get("deleted_at") is not None:
            yield SkippedContent("deleted memories")
        elif row.get("superseded_by"):
            yield SkippedContent("earlier versions")
        elif not text:
            yield SkippedContent("memories without a text")
        else:
            yield ImportedStatement(
                id=label_from_json(row.get("content_hash")),
                text=text,
                when=first_iso_time_from_json(row.get("created_at")),
                themes=tuple(
                    dict.fromkeys((*labels_from_json(row.get("tags")), *labels_from_json([row.get("memory_type")])))
                ),
            )


OTHER_MEMORY_PROGRAM_FORMATS = (
    ImportFileFormat("MCP knowledge graph", _is_knowledge_graph_file, _read_knowledge_graph),
    ImportFileFormat("mem0", _is_mem0, _read_mem0),
    ImportFileFormat(
        "mem0",
        lambda shape: shape.has_table(
            "history", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at", "is_deleted"
        ),
        _read_mem0_history,
    ),
    ImportFileFormat(
        "claude-mem",
        lambda shape: shape.has_table("sdk_sessions") and shape.has_table("observations", "id"),
        _read_claude_mem,
    ),
    ImportFileFormat(
        "mcp-memory-service",
        lambda shape: shape.has_table("memories", "id", "content_hash", "content", "tags", "memory_type"),
        _read_mcp_memory_service,
    ),
)
