"""`madeleine models` (spec O7), without a process that owns the memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.inference.available import names_of_models_available_offline
from madeleine.inference.dense import embedding_dimension
from madeleine.inference.space_measurement import PACKAGED_MODEL_CALIBRATION
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import Scene
from madeleine.memory.vector_space import CosineCalibration
from madeleine.server.background.model_records import EmbeddingModelRecords, EmbeddingModelSwitchRecord
from madeleine.server.cli.arguments import parse_command_line
from madeleine.server.cli.models_command import models_command
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import open_ledger_without_index
from madeleine.server.wiring.open_memory import open_memory_store
from tests.doubles import ADA
from tests.models import adapted_model, embedding_model

RunModels = Callable[..., Coroutine[Any, Any, str]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    tiny = embedding_model(tmp_path / "tiny")
    return Settings(data_dir=tmp_path / "data", being="ada", embedding_model=str(tiny), patrol_auto=False)


@pytest.fixture
async def run(settings: Settings, capsys: pytest.CaptureFixture[str]) -> RunModels:
    async with open_memory_store(settings, background=False) as memory:
        scenes = [NewScene(scene=Scene(action=f"Brick{number} lies in cellar{number}")) for number in range(60)]
        await memory.use_cases.store(ADA, scenes)

    async def run_models(*words: str) -> str:
        capsys.readouterr()
        await models_command(settings, parse_command_line(["models", *words]))
        return capsys.readouterr().out

    return run_models


async def test_the_list_says_which_model_serves_and_which_there_are(run: RunModels, settings: Settings) -> None:
    embedding_model(settings.data_dir / "models" / "another")
    state = json.loads(await run("list", "--json"))
    first, *others = state["models"]
    assert (first["model"], first["roles"], first["embedded"]) == (settings.embedding_model, ["serves", "set"], 60)
    assert {PACKAGED_MODEL_NAME, str(settings.data_dir / "models" / "another")} <= {one["model"] for one in others}
    assert all(one["roles"] == ["available"] for one in others)
    assert "60 of 60" in await run("list")


async def test_own_queries_are_measured_by_category_and_the_store_is_not_changed(
    run: RunModels, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "own.jsonl"
    rows = [
        {"query": "Brick4 lies in cellar4", "relevant": ["m5"], "category": "bricks"},
        {"query": "cellar9", "relevant": ["m10"]},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    before = json.loads(await run("list", "--json"))
    table = json.loads(await run("evaluate", "--queries", str(file), "--json"))
    scores = table["own"][settings.embedding_model]
    assert scores["bricks"] == {"queries": 1, "ndcg_at_10": 1.0, "recall_at_5": 1.0, "recall_at_10": 1.0}
    assert scores["all"]["queries"] == 2
    assert json.loads(await run("list", "--json")) == before
    file.write_text('{"query": "?", "relevant": ["m999"]}')
    with pytest.raises(InvalidInput, match="has no memory 'm999'"):
        await run("evaluate", "--queries", str(file))


async def test_several_models_are_measured_on_sets(run: RunModels, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "s.docs.jsonl").write_text('{"id": "1", "text": "red"}\n{"id": "2", "text": "blue"}\n')
    (tmp_path / "s.queries.jsonl").write_text('{"text": "blue", "gold": ["2"], "cat": "colours"}\n')
    out = await run("evaluate", settings.embedding_model, PACKAGED_MODEL_NAME, "--data", str(tmp_path))
    assert out.count("colours") == 2
    assert out.count("100.0") == 12
    with pytest.raises(InvalidInput, match="holds no sets"):
        await run("evaluate", "--data", str(settings.data_dir))


@pytest.mark.slow
async def test_a_calibration_is_kept_with_the_model(
    run: RunModels, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ruling 16: a model with the default model's cosines gets its calibration; the default model needs none."""
    with pytest.raises(InvalidInput, match="thresholds stay as they are"):
        await run("calibrate")
    same = adapted_model(tmp_path / "same", PACKAGED_MODEL_NAME, dimension=embedding_dimension(PACKAGED_MODEL_NAME))
    settings = settings.model_copy(update={"embedding_model": str(same)})
    await models_command(settings, parse_command_line(["models", "calibrate", "--json"]))
    told = json.loads(capsys.readouterr().out)
    assert told["slope"] == pytest.approx(PACKAGED_MODEL_CALIBRATION.slope, abs=0.05)
    assert told["offset"] == pytest.approx(PACKAGED_MODEL_CALIBRATION.offset, abs=0.05)
    async with open_memory_store(settings, background=False) as memory:
        assert memory.embedder.vector_space.calibration == CosineCalibration(told["slope"], told["offset"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("evaluate",), "--queries with a file"),
        (("switch",), "Name a model, or --back"),
        (("switch", "x", "--back"), "Name a model, or --back"),
        (("switch", "--back"), "none to go back to"),
        (("switch", "nobody/knows-this"), "does not know"),
        (("train", "../mine"), "without .. and without a drive"),
        (("train", "mine"), "Give more documents"),
    ],
)
async def test_what_cannot_be_done_is_refused_with_the_way_out(
    run: RunModels, words: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        await run(*words)


async def test_a_model_whose_files_are_gone_is_left_at_the_next_start(
    run: RunModels, settings: Settings, tmp_path: Path
) -> None:
    gone = EmbeddingModelSwitchRecord(
        model=str(tmp_path / "gone"), previous=settings.embedding_model, configured=settings.embedding_model
    )
    async with open_ledger_without_index(settings) as ledger:
        await EmbeddingModelRecords(ledger.index_source).record_model_switch_for_next_start(gone)
    assert "serves from the next start" in await run("switch", "--back")
    async with open_memory_store(settings, background=False) as memory:
        assert memory.embedder.model_name.startswith("directory/tiny#")


def test_models_of_a_folder_are_listed_and_what_is_none_is_not(tmp_path: Path) -> None:
    base = embedding_model(tmp_path / "models" / "whole")
    adapted_model(tmp_path / "models" / "adapted", base)
    (tmp_path / "models" / "spaces").mkdir()
    assert set(map(str, (base, tmp_path / "models" / "adapted"))) < set(
        names_of_models_available_offline(tmp_path / "models")
    )
    assert str(tmp_path / "models" / "spaces") not in names_of_models_available_offline(tmp_path / "models")
