"""What the ranking of a recall has computed of its candidates, kept for whoever asks why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.ranking.matching import RecallGateOutcome
from madeleine.memory.rules.ranking.score_parts import ScoredCandidates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankingEvidence:
    """Nothing here is computed for it. `gates`: of the query as asked, and of the end of a longer message. `scored`: of
    the candidates at `positions` of the pool. `shown_for`: the version that stands for a candidate, or None where none
    does. `lifted` as in `NewerFirstRanking`."""

    gates: tuple[RecallGateOutcome, ...]
    scored: ScoredCandidates | None = None
    positions: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    shown_for: Mapping[MemoryId, MemoryId | None] = field(default_factory=dict)
    lifted: Mapping[MemoryId, MemoryId] = field(default_factory=dict)
