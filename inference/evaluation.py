"""How well embedding models find what labelled queries ask for (spec O7): the cosine of vectors alone, without words,
gate or ranking.

    nDCG@10 = Σ 1 / log2(rank + 1) over the evidence in the first ten ÷ the greatest possible sum
    R@k     = share of the evidence that is in the first k

Sets: `NAME.docs.jsonl` with `{"id", "text", "unit"?}` and `NAME.queries.jsonl` with `{"text", "gold": [ids], "unit"?,
"cat"?}`, each plain or compressed (`.xz`). A query is searched in its own unit only.
"""

from __future__ import annotations

import json
import lzma
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.errors import InvalidInput

NDCG_CUTOFF_RANK = 10
ALL_QUERY_CATEGORIES_LABEL = "all"
TEXTS_EMBEDDED_AT_ONCE = 64

EmbedTexts = Callable[[list[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """`relevant`: ids of the documents that answer it."""

    text: str
    relevant: frozenset[str]
    category: str = ""


@dataclass(frozen=True, slots=True)
class DocumentsWithQueries:
    """`documents`: id → text; `queries` are asked of these only."""

    documents: Mapping[str, str]
    queries: tuple[LabelledQuery, ...]


@dataclass(frozen=True, slots=True)
class RetrievalEvaluationMetrics:
    """Means over the queries, in [0, 1]."""

    queries: int
    ndcg_at_10: float
    recall_at_5: float
    recall_at_10: float


@dataclass(frozen=True, slots=True)
class QueryEvaluation:
    """`ranks`: 1-based places of the evidence among all documents. `relevant`: how much evidence there is."""

    category: str
    ranks: tuple[int, ...]
    relevant: int

    @property
    def ndcg_at_k(self) -> float:
        return ndcg_at_k(self.ranks, self.relevant, at=NDCG_CUTOFF_RANK)


def ndcg_at_k(ranks: Sequence[int], relevant: int, *, at: int) -> float:
    """`ranks`: 1-based positions of the evidence that was found; `relevant`: how much evidence there is."""
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= at)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(at, relevant) + 1))
    return gain / best if best else 0.0


def recall_at_k(ranks: Sequence[int], relevant: int, *, at: int) -> float:
    return sum(rank <= at for rank in ranks) / relevant if relevant else 0.0


def evaluate_queries(searched: DocumentsWithQueries, embed: EmbedTexts) -> list[QueryEvaluation]:
    """In the order of the queries."""
    ids = list(searched.documents)
    if not ids or not searched.queries:
        return []
    vectors = embed_all(embed, [searched.documents[id_] for id_ in ids])
    queries = embed_all(embed, [query.text for query in searched.queries])
    return evaluate_query_vectors(ids, vectors, searched.queries, queries)


def evaluate_query_vectors(
    ids: Sequence[str],
    vectors: NDArray[np.float32],
    queries: Sequence[LabelledQuery],
    query_vectors: NDArray[np.float32],
) -> list[QueryEvaluation]:
    """`vectors`: float32, (documents, dim); `query_vectors`: float32, (queries, dim); unit rows."""
    place = {id_: at for at, id_ in enumerate(ids)}
    results = []
    for query, vector in zip(queries, query_vectors, strict=True):
        cosines = vectors @ vector
        # Among equals evidence stands last: nothing is gained by documents that a model cannot tell apart.
        ranks = [int((cosines >= cosines[place[id_]]).sum()) for id_ in query.relevant if id_ in place]
        results.append(QueryEvaluation(query.category, tuple(ranks), len(query.relevant)))
    return results


def embed_all(embed: EmbedTexts, texts: Sequence[str]) -> NDArray[np.float32]:
    """float32, (n, dim), a part at a time. `texts`: at least one."""
    parts = (
        list(texts[start : start + TEXTS_EMBEDDED_AT_ONCE]) for start in range(0, len(texts), TEXTS_EMBEDDED_AT_ONCE)
    )
    return np.concatenate([embed(part) for part in parts])


def retrieval_scores_by_query_category(results: Iterable[QueryEvaluation]) -> dict[str, RetrievalEvaluationMetrics]:
    """Of each category in order of its name, then of all together."""
    grouped: dict[str, list[QueryEvaluation]] = defaultdict(list)
    everything = list(results)
    for result in everything:
        if result.category:
            grouped[result.category].append(result)
    ordered = dict(sorted(grouped.items())) | {ALL_QUERY_CATEGORIES_LABEL: everything}
    return {name: _mean_retrieval_metrics(of_category) for name, of_category in ordered.items() if of_category}


def _mean_retrieval_metrics(results: Sequence[QueryEvaluation]) -> RetrievalEvaluationMetrics:
    return RetrievalEvaluationMetrics(
        len(results),
        fmean(result.ndcg_at_k for result in results),
        fmean(recall_at_k(result.ranks, result.relevant, at=5) for result in results),
        fmean(recall_at_k(result.ranks, result.relevant, at=10) for result in results),
    )


# --- files --------------------------------------------------------------------------------------------------------


def read_labelled_queries(file: Path) -> list[LabelledQuery]:
    """JSON lines: `{"query": text, "relevant": [ids of memories], "category": name?}`. Raises `InvalidInput`."""
    queries = []
    for number, row in enumerate(read_json_lines(file), start=1):
        relevant = row.get("relevant")
        if not isinstance(row.get("query"), str) or not isinstance(relevant, list) or not relevant:
            raise InvalidInput(
                f'{file}, line {number}: write {{"query": "…", "relevant": ["m12"], "category": "…"}}; the category '
                "may be left out."
            )
        queries.append(LabelledQuery(row["query"], frozenset(map(str, relevant)), str(row.get("category") or "")))
    return queries


def evaluation_data_set_names(folder: Path) -> list[str]:
    names = {path.name.partition(".docs.jsonl")[0] for path in folder.glob("*.docs.jsonl*")}
    return sorted(names)


def read_evaluation_data_set(folder: Path, name: str) -> list[DocumentsWithQueries]:
    """Its units. Raises `InvalidInput`."""
    documents: dict[str, dict[str, str]] = defaultdict(dict)
    queries: dict[str, list[LabelledQuery]] = defaultdict(list)
    try:
        for row in read_json_lines(_path_of_plain_or_xz_file(folder, f"{name}.docs.jsonl")):
            documents[str(row.get("unit") or "")][str(row["id"])] = str(row["text"])
        for row in read_json_lines(_path_of_plain_or_xz_file(folder, f"{name}.queries.jsonl")):
            gold = frozenset(map(str, row["gold"]))
            if gold:
                query = LabelledQuery(str(row["text"]), gold, str(row.get("cat") or ""))
                queries[str(row.get("unit") or "")].append(query)
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"The set {name} in {folder} lacks {error} in a line.") from error
    return [DocumentsWithQueries(texts, tuple(queries[unit])) for unit, texts in documents.items()]


def _path_of_plain_or_xz_file(folder: Path, name: str) -> Path:
    compressed = folder / f"{name}.xz"
    return compressed if compressed.is_file() else folder / name


def read_json_lines(file: Path) -> Iterator[Mapping[str, Any]]:
    """Of a plain file, or of one that ends with `.xz`. Raises `InvalidInput`."""
    try:
        with lzma.open(file, "rt", encoding="utf-8") if file.suffix == ".xz" else file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise InvalidInput(f"{file}, line {number} is no JSON object.")
                    yield row
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error
