"""❷ One more cycle has passed for every active memory (spec P6 ❷)."""

from __future__ import annotations

from dataclasses import replace

from patrol.night import Night
from patrol.report import StepReport


async def age(night: Night) -> StepReport:
    active = [subject for subject in night.subjects.values() if subject.status == "active"]
    for subject in active:
        night.put(replace(subject, session_count=subject.session_count + 1))
    return StepReport("age", {"aged": len(active)})
