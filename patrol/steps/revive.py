"""❺ Dead memories that were recalled since they died come back (spec P6 ❺, ruling 3)."""

from __future__ import annotations

from dataclasses import replace

from madeleine.memory.model import ClusterId
from madeleine.memory.patrol_records import MemoryState
from madeleine.memory.rules.dynamics.revival import revived_session_count
from madeleine.patrol.night import Night
from madeleine.patrol.report import StepReport


async def revive(night: Night) -> StepReport:
    """Survivors first, so that one that comes back in this very step keeps those that it absorbed at rest."""
    depths = [(len(await survivors(night, subject)), subject) for subject in await night.recalled_dead()]
    touched: set[ClusterId] = set()
    revived = 0
    for _, subject in sorted(depths, key=lambda found: found[0]):
        if any(survivor.status != "dead" for survivor in await survivors(night, subject)):
            continue
        session_count = revived_session_count(
            importance=subject.importance,
            session_count=subject.session_count,
            reactivation_count=subject.reactivation_count,
        )
        if session_count is not None:
            night.put(replace(subject, status="active", session_count=session_count, absorbed_into=None))
            revived += 1
            touched |= {subject.cluster_id} if subject.cluster_id else set()
    await night.recompute(touched)
    return StepReport("revive", {"revived": revived})


async def survivors(night: Night, subject: MemoryState) -> list[MemoryState]:
    """Who absorbed it, who absorbed that one, and so on."""
    found: list[MemoryState] = []
    while subject.absorbed_into and (survivor := await night.subject(subject.absorbed_into)) and survivor not in found:
        found.append(survivor)
        subject = survivor
    return found
