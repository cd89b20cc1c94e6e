"""The re-rankers, and what happens when the model cannot be had."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from madeleine.inference import loading as loading_module
from madeleine.inference.reranking import CrossEncoder, CrossEncoderReranker, load_cross_encoder, sigmoid
from madeleine.memory.errors import InvalidInput, RerankerUnavailable
from tests.contracts.reranker_contract import QUERY, TEXTS, RerankerContract
from tests.models import WordReranker, cross_encoder, embedding_model, onnx_session_options
from tests.rows import for_each_row

PATIENT = 60.0
"""Seconds, for models that do come."""


class TestWordReranker(RerankerContract):
    @pytest.fixture
    def reranker(self) -> WordReranker:
        return WordReranker()


@pytest.fixture(scope="module", params=["a number", "a column", "two classes"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cross_encoder(tmp_path_factory.mktemp("models") / "common-words", answers=request.param)


class TestCrossEncoderReranker(RerankerContract):
    """spec L2, on any model that sentence-transformers exports to ONNX, if small: each form of its answer."""

    @pytest.fixture
    async def reranker(self, directory: Path, tmp_path: Path) -> AsyncIterator[CrossEncoderReranker]:
        reranker = CrossEncoderReranker(str(directory), tmp_path, patience=PATIENT)
        yield reranker
        await reranker.close()

    async def test_scores_are_the_models_through_a_sigmoid(self, reranker: CrossEncoderReranker) -> None:
        """Common tokens: the end mark alone (1 − 2), and that with "we" and "ramen", which is two tokens (4 − 2)."""
        scores = await reranker.scores(QUERY, ["Nothing", "We shared ramen."])
        assert scores == pytest.approx([1 / (1 + math.e), 1 / (1 + math.exp(-2))], abs=1e-6)


@for_each_row(
    ("score", "share"),
    [(0.0, 0.5), (1.0, 0.731059), (-1.0, 0.268941), (800.0, 1.0), (-800.0, 0.0), (math.inf, 1.0), (-math.inf, 0.0)],
)
def test_a_sigmoid_is_as_worked_by_hand_and_never_overflows(score: float, share: float) -> None:
    assert sigmoid(score) == pytest.approx(share, abs=1e-6)


def test_no_plan_of_memory_is_kept_for_each_length_of_text(tmp_path: Path, directory: Path) -> None:
    assert not onnx_session_options(load_cross_encoder(str(directory), tmp_path)).enable_mem_pattern


# --- when the model cannot be had


class Slow:
    """`CrossEncoder` that answers when it may."""

    def __init__(self, *says: float) -> None:
        self.go, self.asked, self.runs = threading.Event(), threading.Event(), 0
        self._says = says

    def rerank(self, query: str, documents: Iterable[str], batch_size: int = 64) -> Iterable[float]:
        self.runs += 1
        self.asked.set()
        assert self.go.wait(PATIENT)
        return self._says or [0.0 for _ in documents]


def loading(model: CrossEncoder | Exception, tmp_path: Path, *, patience: float = PATIENT) -> CrossEncoderReranker:
    def loader(name: str, models_dir: Path) -> CrossEncoder:
        if isinstance(model, Exception):
            raise model
        return model

    return CrossEncoderReranker("slow", tmp_path, patience=patience, loader=loader)


async def test_a_model_that_nobody_knows_is_named_with_the_setting_to_mend(tmp_path: Path) -> None:
    reranker = CrossEncoderReranker("nobody/knows-this", tmp_path, patience=PATIENT)
    with pytest.raises(RerankerUnavailable, match=r"nobody/knows-this.*MADELEINE_RERANKER"):
        await reranker.scores(QUERY, TEXTS)
    await reranker.close()


def test_a_model_whose_files_are_not_there_or_damaged_is_not_available(tmp_path: Path, directory: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=r"MADELEINE_RERANKER names .* no onnx/model\.onnx"):
        CrossEncoderReranker(str(tmp_path / "empty"), tmp_path)
    bi_encoder = embedding_model(tmp_path / "bi-encoder")
    with pytest.raises(RerankerUnavailable, match="a cross-encoder gives one or two"):
        load_cross_encoder(str(bi_encoder), tmp_path)
    damaged = cross_encoder(tmp_path / "damaged")
    (damaged / "onnx" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(RerankerUnavailable, match="could not be loaded"):
        load_cross_encoder(str(damaged), tmp_path)


async def test_nobody_waits_for_a_model_that_is_being_fetched(tmp_path: Path) -> None:
    """spec L2: the fallback; a later call finds it loaded."""
    fetched = threading.Event()
    model = Slow()
    model.go.set()

    def loader(name: str, models_dir: Path) -> CrossEncoder:
        assert fetched.wait(PATIENT)
        return model

    reranker = CrossEncoderReranker("slow", tmp_path, patience=0.01, loader=loader)
    with pytest.raises(RerankerUnavailable, match=r"still being fetched .* within 0\.01 s"):
        await reranker.scores(QUERY, TEXTS)
    fetched.set()
    await asyncio.wait_for(asyncio.shield(reranker._loading.current_or_new_attempt()), PATIENT)
    reranker._patience = PATIENT
    assert await reranker.scores(QUERY, ["a", "b"]) == [0.5, 0.5]
    await reranker.close()


async def test_a_model_that_is_too_slow_is_given_up_and_works_no_longer_than_one_run(tmp_path: Path) -> None:
    model = Slow()
    reranker = loading(model, tmp_path, patience=0.05)
    with pytest.raises(RerankerUnavailable, match=r"did not answer within 0\.05 s"):
        await reranker.scores(QUERY, ["text"] * 100)
    model.go.set()
    reranker._patience = PATIENT
    assert await reranker.scores(QUERY, ["text"]) == [0.5]
    assert model.runs == 2
    await reranker.close()


async def test_a_failure_to_load_is_told_at_once_and_not_tried_again_at_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def loader(name: str, models_dir: Path) -> CrossEncoder:
        tries.append(name)
        raise RerankerUnavailable(name, "there is no network")

    reranker = CrossEncoderReranker("far", tmp_path, patience=PATIENT, loader=loader)
    for _ in range(3):
        with pytest.raises(RerankerUnavailable, match="there is no network"):
            await reranker.scores(QUERY, TEXTS)
    assert tries == ["far"]
    monkeypatch.setattr(loading_module, "MODEL_LOAD_RETRY_PAUSE_SECONDS", 0.0)
    with pytest.raises(RerankerUnavailable):
        await reranker.scores(QUERY, TEXTS)
    assert tries == ["far", "far"]
    await reranker.close()


@pytest.mark.parametrize("says", [[math.nan, 1.0], [1.0], [1.0, 2.0, 3.0]])
async def test_an_answer_that_is_no_number_for_each_text_is_not_used(tmp_path: Path, says: list[float]) -> None:
    model = Slow(*says)
    model.go.set()
    reranker = loading(model, tmp_path)
    with pytest.raises(RerankerUnavailable, match="not one number"):
        await reranker.scores(QUERY, ["a", "b"])
    await reranker.close()


async def test_a_model_that_breaks_is_not_available_and_the_log_has_no_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def rerank(self, query: str, documents: Iterable[str], batch_size: int = 64) -> Iterable[float]:
            raise ValueError("shapes differ")

    for broken in (loading(Broken(), tmp_path), loading(ValueError("no such operator"), tmp_path)):
        with pytest.raises(RerankerUnavailable):
            await broken.scores("a secret question", ["a secret text"])
        await broken.close()
    assert "secret" not in caplog.text
