"""Retrieval metrics over ranks; evidence is binary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from madeleine.inference.evaluation import ndcg_at_k, recall_at_k

__all__ = ["mean_percent", "ndcg_at_k", "recall_at_k", "standard_error_percent"]


def mean_percent(values: Sequence[float]) -> float:
    return 100 * fmean(values) if values else math.nan


def standard_error_percent(values: Sequence[float]) -> float:
    return 100 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
