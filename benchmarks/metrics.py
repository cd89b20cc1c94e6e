"""Retrieval metrics over ranks; evidence is binary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev


def ndcg(ranks: Sequence[int], relevant: int, *, at: int) -> float:
    """`ranks`: 1-based positions of the evidence that was found; `relevant`: how much evidence there is."""
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= at)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(at, relevant) + 1))
    return gain / best if best else 0.0


def recall(ranks: Sequence[int], relevant: int, *, at: int) -> float:
    return sum(rank <= at for rank in ranks) / relevant if relevant else 0.0


def mean_percent(values: Sequence[float]) -> float:
    return 100 * fmean(values) if values else math.nan


def standard_error_percent(values: Sequence[float]) -> float:
    return 100 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
