"""Settings of the memory thread: whether it runs, how often it looks, and what it may spend."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator


class ThreadSettings(BaseModel):
    """`thread` auto: where a language model was chosen for this program, or `thread_records` is on. On: also with a key
    that lies in the environment for others."""

    thread: Literal["auto", "on", "off"] = "auto"
    thread_seconds: Annotated[float, Field(gt=0, le=86_400)] = 5.0
    """Between two looks; what was just observed is looked at sooner."""
    thread_settle_seconds: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """After a person's last words: time for the answer, before they are looked at without it."""
    thread_token_budget: Annotated[int, Field(ge=0, le=10**12)] = 200_000
    """In any 24 hours; 0: no bound."""
    thread_records: bool = False
    """Without a language model: keep what is worth it as it was said."""

    @field_validator("thread", mode="before")
    @classmethod
    def _thread_in_any_case(cls, written: object) -> object:
        return written.lower() if isinstance(written, str) else written
