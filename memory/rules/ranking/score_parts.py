"""Scores of candidates that remember their parts, so that an answer can be explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
CLIPPING_SCORE_PART_NAME = "bounds"
"""What a sum below 0 or above 1 gains or loses."""
SHOWN_SCORE_DIGITS = 4


@dataclass(frozen=True, slots=True, eq=False)
class ScoredCandidates:
    """Of m candidates. `scores`: float32, (m,), in [0, 1]. `parts`: name of a part → float64, (m,), whose sum a score
    is, but for its bounds."""

    scores: NDArray[np.float32]
    parts: Mapping[str, FloatArray]

    @classmethod
    def from_score_parts(cls, parts: Mapping[str, FloatArray], *, greatest: float = 1.0) -> ScoredCandidates:
        """`greatest`: the sum that is the score 1."""
        scaled = {name: np.asarray(part / greatest, np.float64) for name, part in parts.items()}
        total = np.sum(list(scaled.values()), axis=0, dtype=np.float64)
        return cls(np.asarray(np.clip(total, 0, 1), np.float32), scaled)

    def mask_and_candidates_with_min_score(self, minimum: float) -> tuple[NDArray[np.bool_], ScoredCandidates]:
        """bool, (m,), those of at least this score, and these alone."""
        enough = self.scores >= minimum
        return enough, self.restricted_to(enough)

    def restricted_to(self, kept: NDArray[np.bool_]) -> ScoredCandidates:
        """`kept`: bool, (m,), which of the candidates are left."""
        return ScoredCandidates(self.scores[kept], {name: part[kept] for name, part in self.parts.items()})

    def score_parts_at(self, position: int) -> dict[str, float]:
        """The parts that are not 0 of one candidate's score."""
        parts = {name: float(part[position]) for name, part in self.parts.items()}
        parts[CLIPPING_SCORE_PART_NAME] = float(self.scores[position]) - sum(parts.values())
        return {name: part for name, part in parts.items() if abs(part) >= 10**-SHOWN_SCORE_DIGITS / 2}


def round_score_parts(parts: Mapping[str, float], total: float) -> dict[str, float]:
    """The parts, rounded so that they add up to `total`, which is rounded: the greatest takes what is left. Without
    those that are 0 then."""
    rounded = {name: round(part, SHOWN_SCORE_DIGITS) for name, part in parts.items()}
    if rounded:
        greatest = max(rounded, key=lambda name: abs(rounded[name]))
        rest = total - sum(rounded.values())
        rounded[greatest] = round(rounded[greatest] + rest, SHOWN_SCORE_DIGITS)
    return {name: part for name, part in rounded.items() if part}
