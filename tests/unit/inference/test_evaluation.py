"""spec O7: models are measured on labelled queries, a table per category."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from madeleine.inference.evaluation import (
    DocumentsWithQueries,
    LabelledQuery,
    evaluate_queries,
    evaluation_data_set_names,
    read_evaluation_data_set,
    read_labelled_queries,
    retrieval_scores_by_query_category,
)
from madeleine.memory.errors import InvalidInput
from tests.doubles import WordEmbedder

DOCUMENTS = {"a": "red apples", "b": "green pears", "c": "blue plums", "d": "red apples"}


def embed(texts: list[str]) -> NDArray[np.float32]:
    return np.stack([WordEmbedder().vector(text) for text in texts])


def searched(*queries: LabelledQuery) -> DocumentsWithQueries:
    return DocumentsWithQueries(DOCUMENTS, queries)


def test_scores_are_as_worked_by_hand_for_each_category_and_for_all() -> None:
    """ "red" and "apples" are in a and d alone, which a model cannot tell apart: the evidence stands second."""
    queries = searched(
        LabelledQuery("green pears", frozenset({"b"}), "fruit"), LabelledQuery("red apples", frozenset({"a"}), "colour")
    )
    scores = retrieval_scores_by_query_category(evaluate_queries(queries, embed))
    assert list(scores) == ["colour", "fruit", "all"]
    assert scores["fruit"].ndcg_at_10 == scores["fruit"].recall_at_5 == 1.0
    assert scores["colour"].ndcg_at_10 == pytest.approx(0.6309, abs=1e-4)
    assert (scores["all"].queries, scores["all"].recall_at_10) == (2, 1.0)


def test_evidence_that_is_not_there_counts_as_not_found() -> None:
    scores = retrieval_scores_by_query_category(
        evaluate_queries(searched(LabelledQuery("plums", frozenset({"c", "gone"}))), embed)
    )
    assert scores["all"].recall_at_10 == 0.5


def test_a_model_that_tells_nothing_apart_finds_nothing_first() -> None:
    many = DocumentsWithQueries({str(n): "x" for n in range(30)}, (LabelledQuery("x", frozenset({"3"})),))
    assert retrieval_scores_by_query_category(evaluate_queries(many, embed))["all"].ndcg_at_10 == 0.0


@pytest.mark.parametrize("compressed", [False, True])
def test_sets_are_read_plain_or_compressed_unit_by_unit(tmp_path: Path, compressed: bool) -> None:
    rows: dict[str, list[dict[str, object]]] = {
        "docs": [{"id": "1", "unit": "u", "text": "one"}, {"id": "1", "unit": "v", "text": "two"}],
        "queries": [{"unit": "v", "text": "?", "cat": "x", "gold": ["1"]}, {"unit": "u", "text": "?", "gold": []}],
    }
    for kind, content in rows.items():
        text = "".join(json.dumps(row) + "\n" for row in content)
        if compressed:
            (tmp_path / f"s.{kind}.jsonl.xz").write_bytes(lzma.compress(text.encode()))
        else:
            (tmp_path / f"s.{kind}.jsonl").write_text(text)
    assert evaluation_data_set_names(tmp_path) == ["s"]
    first, second = read_evaluation_data_set(tmp_path, "s")
    assert (first.documents, first.queries) == ({"1": "one"}, ())
    assert second.queries == (LabelledQuery("?", frozenset({"1"}), "x"),)


@pytest.mark.parametrize("line", ['{"query": "?"}', '{"query": "?", "relevant": []}', "[1]", "{"])
def test_a_line_that_is_no_labelled_query_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text('{"query": "a", "relevant": ["m1"], "category": "c"}\n')
    assert read_labelled_queries(file) == [LabelledQuery("a", frozenset({"m1"}), "c")]
    file.write_text(f'{{"query": "a", "relevant": ["m1"]}}\n{line}\n')
    with pytest.raises(InvalidInput, match=r"line 2|cannot be read"):
        read_labelled_queries(file)
