"""What the lines of an export file have in common (`records`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer

EXPORT_FORMAT_NAME = "madeleine-export"
EXPORT_FORMAT_VERSION = 1
MAX_EXACT_JSON_INTEGER = 2**53
"""Whole numbers that every reader of JSON keeps exactly."""


def format_export_moment(moment: datetime) -> str:
    """As `2026-03-01T12:00:00.000000Z`."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


Moment = Annotated[AwareDatetime, PlainSerializer(format_export_moment)]
Count = Annotated[int, Field(ge=0, le=MAX_EXACT_JSON_INTEGER)]
RecordId = Annotated[str, Field(min_length=1, max_length=200)]
Uuid = Annotated[str, Field(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
UnitFraction = Annotated[float, Field(ge=0, le=1)]
EmotionAxisValue = Annotated[float, Field(ge=-1, le=1)]
Texts = tuple[str, ...]


class ExportFileBaseModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def json_line(self) -> bytes:
        """The canonical line: fields in order, no space between them, UTF-8, no field without a value."""
        content = {name: value for name, value in self.model_dump(mode="json").items() if value is not None}
        return (json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


class ExportHeader(ExportFileBaseModel):
    """The first line. `counts`: of records, by type. It names no time, so that the same memory gives the same bytes."""

    format: Literal["madeleine-export"] = "madeleine-export"
    version: Literal[1] = 1
    beings: Texts
    counts: Mapping[str, Count]


class ExportEnd(ExportFileBaseModel):
    """The last line: without it, or if it does not fit, the file is torn. `sha256`: of all bytes before this line."""

    type: Literal["end"] = "end"
    counts: Mapping[str, Count]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ExportRecord(ExportFileBaseModel):
    key_fields: ClassVar[tuple[str, ...]] = ("id",)
    """What tells it from others of its type; none for a part of a memory or a run."""
    id_fields: ClassVar[tuple[str, ...]] = ("id",)
    """Those that name something by its id."""
    type: str
    being: RecordId

    @property
    def identity(self) -> tuple[str, ...]:
        return tuple(getattr(self, name) for name in self.key_fields)
