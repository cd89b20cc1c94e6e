"""Embedding models that can be had without a network: what `madeleine models list` shows."""

from __future__ import annotations

from pathlib import Path

from madeleine.inference import ENGLISH_MODEL_NAME, FP32_MODEL_NAME, PACKAGED_MODEL_NAME
from madeleine.inference.adapted import embedding_model_name_from_name_or_path, read_adapted_embedding_model_if_any
from madeleine.inference.default_model.sources import find_english_encoder_source
from madeleine.inference.model_directory import embedding_model_directory_from_path
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import EmbeddingModelName


def names_of_models_available_offline(models_dir: Path) -> list[str]:
    """The default model, its encoder of English alone, that in fp32 where its package is installed, those that
    fastembed has fetched, and the directories with a model in `models_dir`."""
    names = [PACKAGED_MODEL_NAME, ENGLISH_MODEL_NAME]
    if find_english_encoder_source() is not None:
        names.append(FP32_MODEL_NAME)
    return [
        *names,
        *_names_of_downloaded_fastembed_models(models_dir / "hub"),
        *_paths_of_embedding_model_directories(models_dir),
    ]


def model_name_identifying_vectors(name: str) -> EmbeddingModelName:
    """What its vectors are known by. Raises `InvalidInput` for a directory without a model."""
    adapted = read_adapted_embedding_model_if_any(name)
    return adapted.name_with_content_hash if adapted else embedding_model_name_from_name_or_path(name)


def model_name_or_absolute_path(name: str) -> str:
    """A directory by its whole path: another process may run elsewhere."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.is_dir() else name


def _names_of_downloaded_fastembed_models(hub: Path) -> list[str]:
    sources = {folder.name for folder in hub.glob("models--*")}
    if not sources:
        return []
    from fastembed import TextEmbedding

    described = TextEmbedding.list_supported_models()
    of_source = {
        f"models--{(model['sources'].get('hf') or '').replace('/', '--')}": str(model["model"]) for model in described
    }
    return sorted(of_source[source] for source in sources if source in of_source)


def _paths_of_embedding_model_directories(models_dir: Path) -> list[str]:
    found = []
    for folder in sorted(models_dir.glob("*/")):
        try:
            if read_adapted_embedding_model_if_any(str(folder)) or embedding_model_directory_from_path(str(folder)):
                found.append(str(folder))
        except InvalidInput:  # another folder, or a model that is not whole
            continue
    return found
