"""❷ One more cycle has passed for every active memory (spec P6 ❷)."""

from __future__ import annotations

from madeleine.patrol.night import Night
from madeleine.patrol.report import StepReport


async def age(night: Night) -> StepReport:
    return StepReport("age", {"aged": await night.increment_session_counts()})
