"""The lines of an export file: written with counts and a digest, and read so that a torn file is refused."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from madeleine.memory.errors import InvalidInput
from madeleine.memory.moving.record_base import (
    EXPORT_FORMAT_NAME,
    EXPORT_FORMAT_VERSION,
    ExportEnd,
    ExportHeader,
    ExportRecord,
)
from madeleine.memory.moving.records import EXPORT_RECORD_CLASSES, AnyExportRecord, parse_export_line

MAX_EXPORT_LINE_BYTES = 64 * 1024 * 1024
_RECORD_TYPE_ORDER = {type_: place for place, type_ in enumerate(EXPORT_RECORD_CLASSES)}


def export_lines(header: ExportHeader, records: Iterable[ExportRecord]) -> Iterator[bytes]:
    """`records` in the order of `EXPORT_RECORD_CLASSES`."""
    digest, counts = hashlib.sha256(), Counter[str]()
    first = header.json_line()
    digest.update(first)
    yield first
    for record in records:
        line = record.json_line()
        digest.update(line)
        counts[record.type] += 1
        yield line
    yield ExportEnd(counts=record_counts_in_file_order(counts), sha256=digest.hexdigest()).json_line()


def record_counts_in_file_order(counts: Mapping[str, int]) -> dict[str, int]:
    return {type_: counts[type_] for type_ in EXPORT_RECORD_CLASSES if counts.get(type_)}


def is_export_header(line: bytes) -> bool:
    """Whether a file that begins with this line is an export, of this version or another."""
    return _parse_header_or_empty(line).get("format") == EXPORT_FORMAT_NAME


class ExportFileReader:
    """Reads one file. `header` is known at once; `records` ends only if the whole file was as it was written."""

    def __init__(self, name: str, lines: Iterator[bytes]) -> None:
        """`name`: of the file, for errors. Raises `InvalidInput` for what is no export, or of a later version."""
        self._name = name
        self._lines = enumerate(lines, start=1)
        self._digest = hashlib.sha256()
        _, first = next(self._lines, (1, b""))
        self._digest.update(first)
        content = _parse_header_or_empty(first)
        if content.get("format") != EXPORT_FORMAT_NAME:
            raise InvalidInput(f"{name} is no export of Madeleine. Give a file that `madeleine export` wrote.")
        if content.get("version") != EXPORT_FORMAT_VERSION:
            raise InvalidInput(
                f"{name} is an export of version {content.get('version')!r}, and this Madeleine reads version "
                f"{EXPORT_FORMAT_VERSION}. Nothing was imported: update Madeleine."
            )
        try:
            self.header = ExportHeader.model_validate_json(first)
        except ValidationError as error:
            raise self._unreadable_line_error(1, error) from error

    @property
    def sha256(self) -> str:
        """Of what was read, without the last line; it tells one file from another."""
        return self._digest.hexdigest()

    def records(self) -> Iterator[AnyExportRecord]:
        """Raises `InvalidInput`; what came before must not be kept then."""
        counts: Counter[str] = Counter()
        place = 0
        for number, line in self._lines:
            try:
                record = parse_export_line(line)
            except ValidationError as error:
                raise self._unreadable_line_error(number, error) from error
            if isinstance(record, ExportEnd):
                self._require_matching_end(record, counts)
                return
            if record.being not in self.header.beings:
                raise InvalidInput(
                    f"{self._name}, line {number} names a being that the first line does not. Nothing was imported: "
                    "give the file as it was written."
                )
            if _RECORD_TYPE_ORDER[record.type] < place:
                raise InvalidInput(
                    f"{self._name}, line {number}: a {record.type} stands behind a record that may name it. Nothing "
                    "was imported: give the file as it was written."
                )
            place = _RECORD_TYPE_ORDER[record.type]
            counts[record.type] += 1
            self._digest.update(line)
            yield record
        raise InvalidInput(
            f"{self._name} is torn: its last line is missing. Nothing was imported: export it again, or copy it again."
        )

    def _require_matching_end(self, end: ExportEnd, counts: Mapping[str, int]) -> None:
        extra = next(self._lines, None)
        as_counted = dict(end.counts) == dict(counts) == dict(self.header.counts)
        if not as_counted or end.sha256 != self._digest.hexdigest() or extra is not None:
            raise InvalidInput(
                f"{self._name} is not as it was written: its counts or its digest do not fit. Nothing was imported: "
                "export it again, or copy it again."
            )

    def _unreadable_line_error(self, number: int, error: ValidationError) -> InvalidInput:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        return InvalidInput(
            f"{self._name}, line {number} cannot be read ({field}: {first['msg']}). Nothing was imported: give the "
            "file as `madeleine export` wrote it."
        )


def _parse_header_or_empty(line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
