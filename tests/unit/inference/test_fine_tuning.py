"""spec O7: the fine-tuning pipeline. An adapter that helps is kept, one that does not is refused."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from madeleine.inference.adapted import read_adapted_embedding_model_if_any
from madeleine.inference.evaluation import read_json_lines
from madeleine.inference.fine_tuning import (
    AdapterWithoutProvenGain,
    EmbeddingFineTuneConfig,
    FineTuningPipeline,
    LinearAdapterFineTuningPipeline,
    make_question_and_answer_pairs,
    read_training_passages,
    run_fine_tuning,
)
from madeleine.inference.linear_adapter import (
    AdapterTrainingParameters,
    TrainingVectors,
    hard_negative_passage_indices,
    train_adapter,
)
from madeleine.memory.errors import InvalidInput
from madeleine.memory.vector_space import normalize_vector_rows
from tests.rows import for_each_row

SIGNAL_AXES, NOISE_AXES = 20, 40


def drawn(seed: int, size: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal(size)


def vectors_of(texts: list[str]) -> NDArray[np.float32]:
    """Of each text its subjects on some axes, and noise on others: what an adapter can take away."""
    rows = np.zeros((len(texts), SIGNAL_AXES + NOISE_AXES), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for subject in re.findall(r"subject(\d+)", text):
            row[:SIGNAL_AXES] += drawn(int(subject), SIGNAL_AXES)
        row[SIGNAL_AXES:] = drawn(zlib.crc32(text.encode()), NOISE_AXES)
    return normalize_vector_rows(rows)


def noise_alone(texts: list[str]) -> NDArray[np.float32]:
    rows = np.stack([drawn(zlib.crc32(text.encode()), NOISE_AXES) for text in texts])
    return normalize_vector_rows(np.asarray(rows, np.float32))


def documents(folder: Path, count: int = 300) -> Path:
    folder.mkdir()
    lines = [
        f"Note{number} was written about subject{number} today. Kettle{number} belongs to subject{number} as well."
        for number in range(count)
    ]
    (folder / "notes.txt").write_text("\n\n".join(lines))
    return folder


async def tuned(pipeline: FineTuningPipeline, source: Path) -> Path:
    stages: list[str] = []
    checkpoint = await run_fine_tuning(pipeline, str(source), "base", stages.append)
    assert stages[-1] == "training"
    return checkpoint


def pipeline(tmp_path: Path, embed: object) -> LinearAdapterFineTuningPipeline:
    config = EmbeddingFineTuneConfig(checkpoint_path=str(tmp_path / "mine"), base_model="base", enabled=True)
    (tmp_path / "work").mkdir()
    training = AdapterTrainingParameters(epochs=20, learning_rate=3e-3)  # of few documents
    return LinearAdapterFineTuningPipeline(config, embed, tmp_path / "work", training=training)  # type: ignore[arg-type]


async def test_an_adapter_that_helps_on_what_was_kept_apart_is_a_model(tmp_path: Path) -> None:
    stages = pipeline(tmp_path, vectors_of)
    checkpoint = await tuned(stages, documents(tmp_path / "documents"))
    assert stages.result["gain_at_least"] > 0
    assert stages.result["adapted_ndcg"] > stages.result["base_ndcg"]
    adapted = read_adapted_embedding_model_if_any(str(checkpoint))
    assert adapted is not None
    assert (adapted.base, adapted.dimension) == ("base", SIGNAL_AXES + NOISE_AXES)


async def test_an_adapter_that_does_not_help_is_refused_and_not_written(tmp_path: Path) -> None:
    with pytest.raises(AdapterWithoutProvenGain, match="does not help for certain"):
        await tuned(pipeline(tmp_path, noise_alone), documents(tmp_path / "documents"))
    assert not (tmp_path / "mine").exists()


async def test_too_few_documents_are_refused_before_anything_is_embedded(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Give more documents"):
        await tuned(pipeline(tmp_path, None), documents(tmp_path / "documents", count=20))
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    with pytest.raises(InvalidInput, match="holds no documents"):
        await tuned(pipeline(tmp_path / "other", None), tmp_path / "empty")


async def test_no_passage_is_in_two_parts_and_none_is_its_own_wrong_answer(tmp_path: Path) -> None:
    stages = pipeline(tmp_path, vectors_of)
    questions = await stages.generate_training_data(str(documents(tmp_path / "documents")))
    rows = list(read_json_lines(await stages.mine_hard_negatives(questions)))
    parts: dict[str, set[str]] = {}
    for row in rows:
        parts.setdefault(row["passage"], set()).add(row["part"])
    assert {len(of_passage) for of_passage in parts.values()} == {1}
    assert {part for of_passage in parts.values() for part in of_passage} == {"train", "choice", "held_out"}
    passages = list(parts)
    assert all(passages.index(row["passage"]) not in row["negatives"] for row in rows)


async def test_a_language_model_may_write_questions_as_well(tmp_path: Path) -> None:
    async def write(passage: str) -> list[str]:
        return [f"What of {passage}?"]

    config = EmbeddingFineTuneConfig(checkpoint_path=str(tmp_path / "mine"))
    stages = LinearAdapterFineTuningPipeline(config, vectors_of, tmp_path, write_questions=write)
    rows = list(read_json_lines(await stages.generate_training_data(str(documents(tmp_path / "documents")))))
    assert any(row["query"].startswith("What of") for row in rows)


def test_questions_are_a_sentence_a_heading_and_words_and_never_their_own_answer() -> None:
    asked = list(
        make_question_and_answer_pairs("How the boiler works", "The boiler heats the hall. Nobody knows since when.")
    )
    assert asked[0][0] == "How the boiler works"
    assert len(asked) >= 2
    assert len({answer for _, answer in asked}) == 1
    assert all(question not in answer for question, answer in asked)


def test_training_lowers_the_loss_and_begins_with_the_identity() -> None:
    """InfoNCE, computed here once more."""
    chance = np.random.default_rng(3)
    passages, queries = (
        normalize_vector_rows(np.asarray(chance.standard_normal((count, 4)), np.float32)) for count in (6, 3)
    )
    positives = np.array([0, 1, 2], np.intp)
    negatives = hard_negative_passage_indices(passages, queries, positives, skipped=0, count=2)

    def loss(matrix: NDArray[np.float32]) -> float:
        candidates = np.unique(np.concatenate([positives, negatives.ravel()]))
        logits = normalize_vector_rows(queries @ matrix) @ normalize_vector_rows(passages[candidates] @ matrix).T / 0.5
        own = logits[np.arange(3), np.searchsorted(candidates, positives)]
        return float((np.log(np.exp(logits).sum(axis=1)) - own).mean())

    data = TrainingVectors(passages, queries, positives, negatives)
    training = AdapterTrainingParameters(temperature=0.5, epochs=200, batch=3, learning_rate=1e-2, weight_decay=0)
    trained = train_adapter(data, training)
    assert loss(trained) < 0.5 * loss(np.eye(4, dtype=np.float32))
    none = train_adapter(data, AdapterTrainingParameters(epochs=0))
    assert np.array_equal(none, np.eye(4, dtype=np.float32))


@for_each_row(
    "values",
    [
        {"enabled": True},
        {"enabled": True, "checkpoint_path": "x"},
        {"checkpoint_path": "../x"},
        {"checkpoint_path": "C:\\models"},
        {"training_data_dir": "a/../../b"},
        {"base_model": " "},
    ],
)
def test_a_config_is_as_spec_o7_has_it(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EmbeddingFineTuneConfig.model_validate(values)
    assert not EmbeddingFineTuneConfig().enabled


def test_json_lines_are_documents_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "one"}) + "\n" + json.dumps({"other": 1}))
    (tmp_path / "b.md").write_text("# The heading\nfirst\n\nsecond\n\n## Another\n\nthird")
    assert list(read_training_passages(tmp_path)) == [
        ("", "one"), ("The heading", "first"), ("The heading", "second"), ("Another", "third"),
    ]  # fmt: skip
