"""Importance of a memory: it fades with the patrol cycles since the last activation, and can be enough for a dead
memory to come back (spec P6 ❸ ❺)."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from madeleine.memory.model import Memory, MemoryStatus
from madeleine.memory.patrol_records import MemoryFieldsForPatrol

IMPORTANCE_DECAY_CYCLES = 30.0
"""Patrol cycles in which importance falls to 1/e."""
MAX_DYING_IMPORTANCE = 0.05
"""At or below this effective importance a memory is dying."""
CYCLES_DYING_MEMORY_AWAITS_DECISION = 14
"""Patrol cycles for which a dying memory waits for somebody who decides about it: as long as an offer stays open."""
KEEP_TIMES_AGE, MAX_KEEP = 6, timedelta(days=365)
"""How long the decision to keep a memory stands, as a multiple of its age, and at most."""


def effective_importance(importance: float, session_count: float) -> float:
    """`importance × exp(−session_count / 30)`, in [0, 1]."""
    return importance * math.exp(-session_count / IMPORTANCE_DECAY_CYCLES)


def status_from_decayed_importance(memory: Memory | MemoryFieldsForPatrol) -> MemoryStatus:
    """The status after ❸: active memories that have faded are dying, dying ones that were recalled are active
    again (ruling 2). A pinned memory never fades; a dead one stays dead."""
    if memory.status == "dead":
        return memory.status
    faded = effective_importance(memory.importance, memory.session_count) <= MAX_DYING_IMPORTANCE
    return "dying" if faded and not memory.pinned else "active"


def end_of_keep(created_at: datetime, now: datetime) -> datetime:
    """Until when the decision to keep a memory stands: for six times its age, at most a year (ruling 20, ADR 86)."""
    return now + min(KEEP_TIMES_AGE * (now - created_at), MAX_KEEP)


def is_still_kept(memory: Memory | MemoryFieldsForPatrol, now: datetime) -> bool:
    """Whether a mind has decided that it holds, so that its clock starts again once it has faded, without a recall. Not
    where it would be dying nonetheless."""
    return memory.kept_until is not None and now < memory.kept_until and memory.importance > MAX_DYING_IMPORTANCE


def session_count_if_revived(*, importance: float, session_count: int, reactivation_count: int) -> int | None:
    """The session count with which a dead memory comes back in ❺, or None if it stays dead (ruling 3).

    It comes back if it was reactivated at all and `importance × exp(−(session_count / (1 + reactivations)) / 30)`
    is above the floor. The caller leaves out memories whose survivor lives.
    """
    if reactivation_count <= 0:
        return None
    if effective_importance(importance, session_count / (1 + reactivation_count)) <= MAX_DYING_IMPORTANCE:
        return None
    return session_count // (1 + reactivation_count)


def patrols_until_status_is_dying(importance: float, session_count: int, *, patrols_kept: int = 0) -> int:
    """Patrols after which a memory that nobody recalls is dying; 0 for one that has faded so far already. For so many
    patrols as a decision to keep it still stands (`patrols_kept`) its clock starts again whenever it has faded."""
    if importance <= MAX_DYING_IMPORTANCE:
        return 0
    cycles = math.ceil(IMPORTANCE_DECAY_CYCLES * math.log(importance / MAX_DYING_IMPORTANCE))
    left = max(0, cycles - session_count)
    return left + max(0, math.ceil((patrols_kept - left) / cycles)) * cycles
