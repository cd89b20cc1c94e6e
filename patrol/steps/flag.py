"""❸ What has faded is dying; what was dying and was recalled is active again (spec P6 ❸, ruling 2)."""

from __future__ import annotations

from dataclasses import replace

from madeleine.memory.model import ClusterId
from madeleine.memory.rules.dynamics.decay import flagged
from madeleine.patrol.night import Night
from madeleine.patrol.report import StepReport


async def flag(night: Night) -> StepReport:
    dying = active = 0
    touched: set[ClusterId] = set()
    for subject in await night.with_outdated_status():
        status = flagged(
            subject.status,
            importance=subject.importance,
            session_count=subject.session_count,
            pinned=subject.pinned,
        )
        night.put(replace(subject, status=status))
        dying += status == "dying"
        active += status == "active"
        touched |= {subject.cluster_id} if subject.cluster_id else set()
    await night.recompute(touched)
    return StepReport("flag", {"dying": dying, "active_again": active})
