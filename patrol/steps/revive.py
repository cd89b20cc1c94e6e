"""❺ Dead memories that were recalled since they died come back (spec P6 ❺, ruling 3)."""

from __future__ import annotations

from dataclasses import replace

from memory.rules.revival import revived_session_count
from patrol.night import Night
from patrol.report import StepReport


async def revive(night: Night) -> StepReport:
    revived = 0
    for subject in list(night.subjects.values()):
        if subject.status != "dead":
            continue
        survivor = night.subjects.get(subject.absorbed_into) if subject.absorbed_into else None
        if survivor is not None and survivor.status != "dead":
            continue
        session_count = revived_session_count(
            importance=subject.importance,
            session_count=subject.session_count,
            reactivation_count=subject.reactivation_count,
        )
        if session_count is not None:
            night.put(replace(subject, status="active", session_count=session_count))
            revived += 1
    return StepReport("revive", {"revived": revived})
