"""What is read of other programs' files, and what is left out, by the shape of the files."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.moving.sources.markdown import import_items_from_markdown
from madeleine.memory.moving.sources.registry import IMPORT_FILE_FORMATS, recognise_import_file_format
from madeleine.memory.moving.sources.shapes import top_level_json_keys
from madeleine.memory.moving.sources.values import (
    ImportedStatement,
    ImportFileUnreadable,
    SkippedContent,
    UnreadableImportEntryReport,
    first_iso_time_from_json,
    imported_statement_key,
)
from madeleine.memory.watch.observe import ObservedConversationPart
from madeleine.server.moving_in.source_files import find_import_files
from tests import other_programs as programs
from tests.rows import for_each_row

DAY = "2026-03-01"
TOOLS, OTHER = "tool calls, their results and thoughts", "lines that nobody said"


@dataclass
class Read:
    """`statements`: text → (day, themes); `messages`: (session, title, role, text)."""

    formats: list[str] = field(default_factory=list)
    statements: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    messages: list[tuple[str, str, str, str]] = field(default_factory=list)
    days: set[str] = field(default_factory=set)
    not_taken: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)


def read(path: Path, max_text_chars: int = 1_000) -> Read:
    found = Read()
    for file in find_import_files(path):
        format_ = recognise_import_file_format(file)
        if format_ is None:
            found.not_taken["unrecognised"] += 1
            continue
        found.formats.append(format_.name)
        for item in format_.read(file, max_text_chars):
            match item:
                case ImportedStatement():
                    found.statements[item.text] = (item.when[:10], item.themes)
                case ObservedConversationPart():
                    for one in item.messages:
                        found.messages.append((item.session_id, item.title, one.role, one.text))
                        found.days.add(str(one.at)[:10])
                        assert one.key
                case SkippedContent():
                    found.not_taken[item.reason] += item.count
                case UnreadableImportEntryReport():
                    found.damaged.append(f"{item.place}: {item.reason}")
    return found


Make = Callable[[Path], Path]
Case = tuple[Make, str, dict[str, tuple[str, tuple[str, ...]]], list[tuple[str, str, str, str]], dict[str, int]]
"""(how it is made, format, statements, messages, not taken)."""
CASES: list[Case] = [
    (
        programs.claude_code, "Claude Code", {"Run the tests with make test.": (DAY, ("Tests",))},
        [
            (programs.SESSION, "harbour: The crane at pier 4", "user", "Which crane stands at pier 4?"),
            (programs.SESSION, "harbour: The crane at pier 4", "assistant", "The red one."),
        ],
        {OTHER: 2, TOOLS: 2, "messages of subagents": 1, "entries of an index of notes": 1},
    ),
    (
        programs.codex, "Codex", {},
        [
            ("019a2d7a", "harbour", "user", "Rename the harbour module."),
            ("019a2d7a", "harbour", "assistant", "It is called port now."),
        ],
        {OTHER: 1, TOOLS: 2},
    ),
    (
        programs.codex_before_events, "Codex", {},
        [("5973b6c0", "", "user", "Which port?"), ("5973b6c0", "", "assistant", "8765.")], {OTHER: 1},
    ),
    (
        programs.gemini, "Gemini CLI", {},
        [
            ("abcd1234-x", "harbour: The ferry", "user", "When does the ferry leave?"),
            ("abcd1234-x", "harbour: The ferry", "assistant", "At one."),
        ],
        {TOOLS: 1, OTHER: 1},
    ),
    (
        programs.cursor, "Cursor", {},
        [("c-1", "harbour", "user", "Paint the quay"), ("c-1", "harbour", "assistant", "It is blue now.")], {TOOLS: 1},
    ),
    (
        programs.cursor_database, "Cursor", {},
        [
            ("k-0", "", "user", "Ahoy"), ("k-1", "The quay", "user", "How long is the quay?"),
            ("k-1", "The quay", "user", "And how wide?"),
        ],
        {TOOLS: 1},
    ),
    (
        programs.chatgpt_export, "ChatGPT", {},
        [("g-1", "The harbour", "user", "Hi"), ("g-1", "The harbour", "assistant", "Hello")],
        {"files about the account": 1, "unrecognised": 1},
    ),
    (
        programs.claude_export, "Claude",
        {
            "**Work**\n\nAda runs the harbour office.": ("", ()), "The quay is painted blue.": ("", ()),
            "Quay: Answer in metres.": (DAY, ("Quay",)),
            "plan.md: The quay is 80 metres long.": (DAY, ("plan.md", "Quay")),
        },
        [
            ("c-1", "The harbour", "user", "Where is the harbour?"),
            ("c-1", "The harbour", "assistant", "South."),
        ],
        {"files about the account": 1},
    ),
    (
        lambda folder: programs.knowledge_graph(folder / "memory.json"), "MCP knowledge graph",
        {
            "Ada Lovelace: Prefers tea over coffee": ("", ("person",)),
            "Ada Lovelace: Lives at the harbour": ("", ("person",)),
            "Ada Lovelace works on Analytical Engine": ("", ()),
        },
        [], {"entities of which nothing was observed": 1},
    ),
    (programs.mem0_history, "mem0", {"Ada lives in Rome.": (DAY, ())}, [],
     {"earlier versions": 2, "deleted memories": 1}),
    (
        programs.basic_memory, "basic-memory",
        {
            "Harbour Crane: It stands at pier 4.": (DAY, ("Harbour Crane", "harbour")),
            "Harbour Crane: The crane is red #paint (seen in March)":
                (DAY, ("colour", "paint", "Harbour Crane", "harbour")),
            "Harbour Crane: [ ] grease it": (DAY, ("Harbour Crane", "harbour")),
            "Harbour Crane belongs to Harbour Office": (DAY, ("Harbour Crane", "harbour")),
        },
        [], {"links without a text": 1},
    ),
    (
        programs.claude_mem, "claude-mem",
        {
            "The crane stopped. A fuse was blown; it is replaced.": (DAY, ("harbour", "bugfix", "gotcha")),
            "Repair the crane\nThe crane runs.": (DAY, ("harbour",)),
        },
        [(programs.SESSION, "", "user", "Which crane stands at pier 4?")], {"prompts to the program": 1},
    ),
    (
        programs.mcp_memory_service, "mcp-memory-service",
        {
            "Ada prefers short answers.": (DAY, ("preference", "style", "observation")),
            "The harbour office moved to pier 7.": (DAY, ("harbour", "note")),
        },
        [], {"earlier versions": 1, "deleted memories": 1},
    ),
    (
        programs.markdown, "Markdown",
        {
            "The harbour was built in 1880.": (DAY, ()), "The ferry was late.": ("2026-03-02", ()),
            "People:\n- Ada: runs the office\n- Bob: drives the crane": (DAY, ()),
            "People:\n```\n# no heading\n```": (DAY, ()),
        },
        [], {"unrecognised": 1},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]} {case[0].__name__}")
def test_what_a_program_keeps_is_read_by_its_shape(tmp_path: Path, case: Case) -> None:
    make, format_name, statements, messages, not_taken = case
    found = read(make(tmp_path))
    assert format_name in found.formats
    assert (found.statements, found.messages, dict(found.not_taken)) == (statements, messages, not_taken)
    assert found.damaged == []
    if make not in (programs.chatgpt_export, programs.claude_export, programs.codex_before_events):
        assert found.days <= {DAY}


def test_every_format_has_a_case() -> None:
    covered = {name for _, name, *_ in CASES}
    beside = {"Claude Code memory", "Claude memories", "Claude projects", "account"}
    assert {format_.name for format_ in IMPORT_FILE_FORMATS} - beside - covered == {
        "conversations", "Claude manifest", "Madeleine",
    }  # fmt: skip


def test_the_name_of_a_file_decides_nothing_where_its_shape_does(tmp_path: Path) -> None:
    for number, (make, name, *_) in enumerate(CASES[:12]):
        made = make(tmp_path / str(number))
        files = [path for path in ([made] if made.is_file() else made.rglob("*")) if path.is_file()]
        for path in files:
            if path.suffix in (".md", ".html"):
                continue
            shutil.copy(path, odd := tmp_path / f"{number}-{path.stem}.data")
            [file] = find_import_files(odd)
            [original] = find_import_files(path)
            formats = [recognise_import_file_format(each) for each in (file, original)]
            assert formats[0] == formats[1], (name, path)


def test_an_archive_holds_what_its_folder_holds(tmp_path: Path) -> None:
    folder = programs.claude_export(tmp_path / "export")
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*.json")):
            archive.write(path, path.relative_to(folder))
    in_archive, in_folder = read(tmp_path / "export.zip"), read(folder)
    assert in_archive.messages == in_folder.messages
    assert in_archive.statements == in_folder.statements


def test_a_file_that_cannot_be_read_keeps_no_other_of_its_folder_back(tmp_path: Path) -> None:
    programs.markdown(tmp_path)
    whole = tmp_path / "a.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("inner.zip", b"PK")
    errors: list[ImportFileUnreadable] = []
    names = [Path(file.display_path).name for file in find_import_files(tmp_path, errors.append)]
    assert names == ["2026-03-02.md", "harbour.md", "photo.png"]
    assert [str(whole) in str(error) for error in errors] == [True]


def test_the_list_of_archives_is_named_with_what_to_do(tmp_path: Path) -> None:
    [damaged] = read(programs.claude_manifest(tmp_path)).damaged
    assert "download them by the links in it" in damaged
    assert damaged.endswith("a-000.zip, b-000.zip")


def test_mem0_is_read_as_it_answers(tmp_path: Path) -> None:
    found = read(programs.mem0(tmp_path / "all.json"))
    assert found.statements == {"I am allergic to peanuts.": (DAY, ("health",))}
    assert found.damaged == ["memory 2: it has no text"]


def test_a_graph_is_read_as_the_server_answers(tmp_path: Path) -> None:
    entity = {"name": "ada_service", "entityType": "program", "observations": ["Listens on port 8765", 7]}
    found = read(programs.json_file(tmp_path / "g.json", {"entities": [entity], "relations": []}))
    assert found.statements == {"ada_service: Listens on port 8765": ("", ("program",))}


def test_an_observation_of_a_graph_names_its_entity_as_an_actor(tmp_path: Path) -> None:
    """`related` knew nothing of an entity whose name is in front of each observation, as a speaker's is."""
    path = programs.knowledge_graph(tmp_path / "memory.json")
    [file] = find_import_files(path)
    format_ = recognise_import_file_format(file)
    assert format_ is not None
    statements = [item for item in format_.read(file, 1_000) if isinstance(item, ImportedStatement)]
    assert [one.actors for one in statements] == [
        ("Ada Lovelace",), ("Ada Lovelace",), ("Ada Lovelace", "Analytical Engine"),
    ]  # fmt: skip


@for_each_row(
    ("text", "statements"),
    [
        ("", []),
        ("---\ntitle: x\n", ["title: x"]),
        ("One.\n\nTwo.", ["One.\n\nTwo."]),
        (f"{'a' * 500}\n\n{'b' * 500}", ["a" * 500, "b" * 500]),
        ("# A\n## B\n- one\n  more\n- two", ["B:\n- one\n  more\n- two"]),
        ("# Q\n" + f"- {'a' * 400}\n- {'b' * 400}", [f"Q: {'a' * 400}", f"Q: {'b' * 400}"]),
        ("- [00:01:02] spoken\n- [a](b.md)", ["[00:01:02] spoken"]),
        ("<!-- hidden -->\nseen\n***\n", ["seen"]),
    ],
)
def test_markdown_is_cut_where_its_parts_end(text: str, statements: list[str]) -> None:
    items = import_items_from_markdown(text, title="")
    assert [item.text for item in items if isinstance(item, ImportedStatement)] == statements


@for_each_row(
    ("text", "keys"),
    [
        ('{"a": 1, "b": {"c": 2}, "d', {"a", "b"}), ('[{"a": [{"x": 1}], "b": "}"}, {"z": 1}]', {"a", "b"}),
        ("[1, 2]", set()), ('"a": 1', set()), ("", set()), ('{"a\\"": {"b"', {'a\\"'}),
    ],
)  # fmt: skip
def test_keys_are_told_from_the_beginning_of_a_file(text: str, keys: set[str]) -> None:
    assert top_level_json_keys(text) == keys


@for_each_row(
    ("value", "when"),
    [
        (1_772_366_400, "2026-03-01T12:00:00+00:00"), (1_772_366_400_000, "2026-03-01T12:00:00+00:00"),
        ("2026-03-01T12:00:00.5Z", "2026-03-01T12:00:00+00:00"), (10**40, ""), (True, ""), ("soon", ""), (None, ""),
    ],
)  # fmt: skip
def test_times_are_read_in_every_form(value: object, when: str) -> None:
    assert first_iso_time_from_json(value) == when


def test_a_statement_has_one_key_wherever_it_stands() -> None:
    one = ImportedStatement(text="a", when="2026-03-01")
    assert imported_statement_key("mem0", one) == imported_statement_key(
        "mem0", ImportedStatement(text="a", themes=("x",))
    )
    assert imported_statement_key("mem0", one) != imported_statement_key("mem0", ImportedStatement(text="a", id="1"))


def test_a_damaged_file_is_named_and_never_ends_in_another_error(tmp_path: Path) -> None:
    """Torn anywhere, or with bytes that are not its own."""
    chance = random.Random(17)
    for number, (make, *_) in enumerate(CASES):
        made = make(tmp_path / str(number))
        for path in sorted(path for path in ([made] if made.is_file() else made.rglob("*")) if path.is_file()):
            whole = path.read_bytes()
            for _ in range(12):
                torn = bytearray(whole[: chance.randrange(len(whole) + 1)])
                for _ in range(chance.randrange(4)):
                    if torn:
                        torn[chance.randrange(len(torn))] = chance.randrange(256)
                path.write_bytes(torn)
                with suppress(ImportFileUnreadable):
                    read(path)
            path.write_bytes(whole)


@pytest.mark.parametrize("make", [case[0] for case in CASES if case[0] not in (programs.markdown,)])
def test_odd_values_are_left_out_and_do_no_harm(tmp_path: Path, make: Make) -> None:
    """Every value of every JSON file replaced by another type, one after the other."""
    made = make(tmp_path)
    for path in sorted(path for path in ([made] if made.is_file() else made.rglob("*")) if path.suffix == ".jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            for changed in _with_odd_values(line):
                path.write_text("\n".join(json.dumps(changed if one is line else one) for one in lines))
                read(path)


def _with_odd_values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [
            value | {name: odd}
            for name, inner in value.items()
            for odd in (None, 7, [], {}, "x", [None], *_with_odd_values(inner))
        ]
    if isinstance(value, list):
        return [[odd] for inner in value for odd in _with_odd_values(inner)]
    return []
