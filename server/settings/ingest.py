"""Settings of pouring texts in: how they are cut, and what is kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class IngestSettings(BaseModel):
    """Tokens are those of the embedding model."""

    ingest_threshold: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Importance below which a part of a text is not stored."""
    min_chunk_tokens: Annotated[int, Field(ge=1, le=2_000)] = 50
    max_chunk_tokens: Annotated[int, Field(ge=20, le=8_000)] = 300
