"""Trains a linear adapter on the vectors of an embedding model, on the processor and with numpy alone (spec O7).

A query q and its passage d are both multiplied by a matrix W, which begins as the identity. The loss is InfoNCE:

    L = −log( exp(cos(qW, dW) / τ) / Σ exp(cos(qW, cW) / τ) )

over the passages c of the batch and the hard negatives of its queries: passages that the base model finds like the
query and that do not answer it. The matrix is then drawn back towards the identity, by the share that does best on
queries that were kept apart for this choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

TRIED_ADAPTER_BLEND_SHARES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class AdapterTrainingParameters:
    """`temperature`: τ. `weight_decay`: of the distance to the identity.

    Spec O7 has τ = 0.02 and 3 epochs for all weights of a model. A matrix, trained on rules' questions and tested on
    people's, gains twice as much with these (ADR 0055).
    """

    temperature: float = 0.05
    epochs: int = 5
    batch: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    seed: int = 7


@dataclass(frozen=True, eq=False)
class TrainingVectors:
    """`passages`: float32, (m, dim). `queries`: float32, (n, dim). `positives`: (n,), the passage of each query.
    `negatives`: (n, k), passages that do not answer it."""

    passages: Matrix
    queries: Matrix
    positives: NDArray[np.intp]
    negatives: NDArray[np.intp]


def hard_negative_passage_indices(
    passages: Matrix, queries: Matrix, positives: NDArray[np.intp], *, skipped: int, count: int
) -> NDArray[np.intp]:
    """(n, count): the passages most like each query that are not its own. The `skipped` nearest are left out: they
    often answer it as well."""
    mined = np.zeros((len(queries), count), np.intp)
    for at, (query, own) in enumerate(zip(queries, positives, strict=True)):
        cosines = passages @ query
        cosines[own] = -np.inf
        order = np.argsort(-cosines, kind="stable")
        mined[at] = order[skipped : skipped + count]
    return mined


def train_adapter(data: TrainingVectors, training: AdapterTrainingParameters) -> Matrix:
    """float32, (dim, dim). By Adam (Kingma and Ba 2015, arXiv:1412.6980)."""
    dim = data.passages.shape[1]
    matrix = identity = np.eye(dim, dtype=np.float32)
    mean, variance = np.zeros_like(matrix), np.zeros_like(matrix)
    chance = np.random.default_rng(training.seed)
    step = 0
    for _ in range(training.epochs):
        order = chance.permutation(len(data.queries))
        for start in range(0, len(order), training.batch):
            chosen = order[start : start + training.batch]
            gradient = _info_nce_loss_gradient(data, chosen, matrix, training.temperature)
            gradient += training.weight_decay * (matrix - identity)
            step += 1
            mean = 0.9 * mean + 0.1 * gradient
            variance = 0.999 * variance + 0.001 * gradient**2
            corrected = (mean / (1 - 0.9**step)) / (np.sqrt(variance / (1 - 0.999**step)) + 1e-8)
            matrix = np.asarray(matrix - training.learning_rate * corrected, np.float32)
    return matrix


def blend_with_identity_matrix(matrix: Matrix, share: float) -> Matrix:
    identity = np.eye(len(matrix), dtype=np.float32)
    return np.asarray(identity + share * (matrix - identity), np.float32)


def _info_nce_loss_gradient(
    data: TrainingVectors, chosen: Sequence[int] | NDArray[np.intp], matrix: Matrix, temperature: float
) -> Matrix:
    """Of the mean loss of these queries."""
    queries, positives = data.queries[chosen], data.positives[chosen]
    candidates = np.unique(np.concatenate([positives, data.negatives[chosen].ravel()]))
    passages = data.passages[candidates]
    at_own = np.searchsorted(candidates, positives)
    own_rows = np.arange(len(queries))
    mapped_queries, query_lengths = _mapped_unit_rows_and_lengths(queries, matrix)
    mapped_passages, passage_lengths = _mapped_unit_rows_and_lengths(passages, matrix)
    logits = mapped_queries @ mapped_passages.T / temperature
    logits -= logits.max(axis=1, keepdims=True)
    shares = np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    shares[own_rows, at_own] -= 1
    shares /= temperature * len(queries)
    of_queries = _gradient_before_normalization(shares @ mapped_passages, mapped_queries, query_lengths)
    of_passages = _gradient_before_normalization(shares.T @ mapped_queries, mapped_passages, passage_lengths)
    return np.asarray(queries.T @ of_queries + passages.T @ of_passages, np.float32)


def _mapped_unit_rows_and_lengths(vectors: Matrix, matrix: Matrix) -> tuple[Matrix, Matrix]:
    """(unit rows, their lengths before)."""
    mapped = vectors @ matrix
    lengths = np.maximum(np.linalg.norm(mapped, axis=1, keepdims=True), 1e-9)
    return np.asarray(mapped / lengths, np.float32), np.asarray(lengths, np.float32)


def _gradient_before_normalization(gradient: Matrix, unit: Matrix, lengths: Matrix) -> Matrix:
    """The gradient before rows were brought to unit length."""
    return np.asarray((gradient - unit * (gradient * unit).sum(axis=1, keepdims=True)) / lengths, np.float32)
