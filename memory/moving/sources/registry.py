"""All formats that an import recognises, in the order in which they are tried."""

from __future__ import annotations

from madeleine.memory.moving.sources.chat_exports import CHAT_EXPORT_FORMATS
from madeleine.memory.moving.sources.coding_agents import CODING_AGENT_FORMATS
from madeleine.memory.moving.sources.markdown import MARKDOWN_FORMATS
from madeleine.memory.moving.sources.memory_stores import MEMORY_STORE_FORMATS
from madeleine.memory.moving.sources.shapes import shape_of
from madeleine.memory.moving.sources.values import SourceFile, SourceFormat

SOURCE_FORMATS: tuple[SourceFormat, ...] = (
    *CODING_AGENT_FORMATS,
    *MEMORY_STORE_FORMATS,
    *CHAT_EXPORT_FORMATS,
    *MARKDOWN_FORMATS,
)


def format_of(file: SourceFile) -> SourceFormat | None:
    """Raises `UnreadableSource`."""
    shape = shape_of(file)
    return next((format_ for format_ in SOURCE_FORMATS if format_.recognises(shape)), None)
