"""The file: a schema that is shipped, and refusal of whatever is not as it was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from madeleine.memory.errors import InvalidInput
from madeleine.memory.moving import records as r
from madeleine.memory.moving.export_file import ExportFileReader, export_lines, is_export_header
from madeleine.memory.moving.record_base import ExportHeader, ExportRecord
from tests.rows import for_each_row

BEING = r.BeingExportRecord(being="ada", cycle=1, think=("on",), think_sources=(), last_number=0)
CLUSTER = r.ClusterExportRecord(being="ada", id="c", name="Tea", parent_id="c", is_root=True)
HEADER = ExportHeader(beings=("ada",), counts={"being": 1, "cluster": 1})
LINES = list(export_lines(HEADER, [BEING, CLUSTER]))


def read(lines: list[bytes]) -> list[ExportRecord]:
    return list(ExportFileReader("e.jsonl", iter(lines)).records())


def test_the_shipped_schema_is_that_of_the_records() -> None:
    """`python -c "..."` with `export_json_schema` writes it anew after a change of the records."""
    shipped = Path(r.__file__).with_name("export.schema.json").read_text(encoding="utf-8")
    assert shipped == json.dumps(r.export_json_schema(), indent=2, ensure_ascii=False) + "\n"


def test_every_record_of_the_format_is_documented() -> None:
    document = (Path(__file__).parents[4] / "docs/export.md").read_text(encoding="utf-8")
    assert [name for name in r.EXPORT_RECORD_CLASSES if f"| `{name}` |" not in document] == []


def test_records_are_read_as_they_were_written() -> None:
    assert read(LINES) == [BEING, CLUSTER]


@for_each_row(
    ("lines", "reason"),
    [
        ([], "no export"),
        ([b"{}\n"], "no export"),
        ([b"\xff\xfe\n"], "no export"),
        ([b"[" * 100_000], "no export"),
        ([b'{"format":"madeleine-export","version":2}\n'], "version 2"),
        ([b'{"format":"madeleine-export","version":1,"beings":"x","counts":{}}\n'], "line 1"),
        (LINES[:1], "torn"),
        (LINES[:-1], "torn"),
        ([*LINES[:2], LINES[-1]], "do not fit"),
        ([*LINES[:2], LINES[2].replace(b"Tea", b"Gin"), LINES[-1]], "do not fit"),
        ([*LINES, LINES[-1]], "do not fit"),
        ([LINES[0], LINES[2], LINES[1], LINES[3]], "behind"),
        ([LINES[0], LINES[1], LINES[2][:-20] + b"\n", LINES[3]], "line 3"),
        ([LINES[0], LINES[1].replace(b'"ada"', b'"bob"'), *LINES[2:]], "names a being"),
        ([LINES[0], LINES[1].replace(b'"cycle":1', b'"cycle":-1'), *LINES[2:]], "line 2"),
        ([LINES[0], LINES[1].replace(b'"cycle":1', b'"cycle":1,"other":1'), *LINES[2:]], "line 2"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused(lines: list[bytes], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        read(lines)


def test_an_export_is_recognised_by_its_first_line() -> None:
    assert is_export_header(LINES[0])
    assert not any(map(is_export_header, [LINES[1], b"", b"[]", b'[{"uuid": "c1"}]', b"[" * 100_000]))
