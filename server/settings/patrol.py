"""Settings of the patrol: when it comes by itself, and how much it takes up at once."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field


def _hour_or_off(given: object) -> object:
    return None if isinstance(given, str) and given.strip().lower() in ("off", "none", "never", "") else given


class PatrolSettings(BaseModel):
    """`patrol_by_itself` off: only when it is asked for, whatever the others say."""

    patrol_by_itself: bool = True
    patrol_after_memories: Annotated[int, Field(ge=0, le=10**9)] = 200
    """New ones since the last; 0: not for their number."""
    patrol_at_hour: Annotated[Annotated[int, Field(ge=0, le=23)] | None, BeforeValidator(_hour_or_off)] = 3
    """In this machine's time; "off": at no hour."""
    patrol_after_idle_minutes: Annotated[float, Field(ge=0, le=10**6)] = 60.0
    """Without any call, when there is something new; 0: not for idleness."""
    patrol_check_seconds: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    """How often it is looked whether one is due; the first time so long after the start."""
    patrol_step_seconds: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    """After these a step takes up nothing new; what is left waits for the next patrol."""
    compression_threshold: Annotated[int, Field(ge=1, le=10**9)] = 50
    """Sessions, above which the older ones are summarised."""
