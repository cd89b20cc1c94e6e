"""An embedding model in a directory of its own, as sentence-transformers exports it to ONNX (spec O7).

`model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`; where they are there, `1_Pooling/config.json` says how the
tokens' vectors become one, `config.json` and `sentence_bert_config.json` how many tokens the model reads. The vectors
of a directory are known by a hash of its files: moved, it is the same model; changed, another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from madeleine.inference.loading import onnx_session_options
from madeleine.memory.errors import EmbeddingUnavailable, InvalidInput
from madeleine.memory.model import EmbeddingModelName

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Encoding, Tokenizer

ONNX_FILE_NAMES = ("onnx/model.onnx", "model.onnx")
TOKENIZER_FILE_NAME = "tokenizer.json"
DEFAULT_EMBEDDING_MODEL_TOKEN_LIMIT = 512
HASHED_BLOCKS, HASHED_BLOCK_BYTES = 64, 65_536
"""Of a large file so many blocks of so many bytes, evenly spread, are hashed: some milliseconds."""

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class EmbeddingModelDirectory:
    """`max_tokens`: how much of a text the model reads. `dimension`: of its vectors."""

    path: Path
    onnx_file: Path
    pooling: Pooling
    dimension: int
    max_tokens: int

    @property
    def name_with_content_hash(self) -> EmbeddingModelName:
        """What its vectors are known by: `directory/<its name>#<hash of its files>`."""
        digest = hashlib.sha256(f"{self.pooling} {self.max_tokens}".encode())
        weights = sorted(self.onnx_file.parent.glob(f"{self.onnx_file.name}*"))  # large tensors lie beside the graph
        for file in (self.path / TOKENIZER_FILE_NAME, *weights):
            for block in _sampled_file_blocks_to_hash(file):
                digest.update(block)
        return EmbeddingModelName(f"directory/{self.path.name}#{digest.hexdigest()[:12]}")


def embedding_model_directory_from_path(name: str) -> EmbeddingModelDirectory | None:
    """The directory that `name` is the path of; None if it is none. Raises `InvalidInput` for one that lacks what a
    model needs."""
    path = Path(name).expanduser()
    if not path.is_dir():
        return None
    onnx_file = find_onnx_file(path, setting="MADELEINE_EMBEDDING_MODEL")
    config, pooling = (
        _read_json_object_or_empty(path / "config.json"),
        _read_json_object_or_empty(path / "1_Pooling" / "config.json"),
    )
    dimension = pooling.get("word_embedding_dimension") or config.get("hidden_size")
    if not isinstance(dimension, int):
        raise InvalidInput(
            f"MADELEINE_EMBEDDING_MODEL names the directory {path}, whose config.json tells no hidden_size: "
            f"the dimension of the vectors is unknown."
        )
    return EmbeddingModelDirectory(
        path=path.resolve(),
        onnx_file=onnx_file,
        pooling=_pooling_mode_from_config(path, pooling),
        dimension=dimension,
        max_tokens=max_tokens_of_model_directory(path),
    )


def find_onnx_file(path: Path, *, setting: str) -> Path:
    """Raises `InvalidInput` for a directory without a model or a tokenizer, which `setting` names."""
    onnx_file = next((path / file for file in ONNX_FILE_NAMES if (path / file).is_file()), None)
    if onnx_file is None or not (path / TOKENIZER_FILE_NAME).is_file():
        missing = TOKENIZER_FILE_NAME if onnx_file else " or ".join(ONNX_FILE_NAMES)
        raise InvalidInput(f"{setting} names the directory {path}, which has no {missing}.")
    return onnx_file.resolve()


def max_tokens_of_model_directory(path: Path) -> int:
    """How much of a text the model reads: the smallest limit that its files tell."""
    limits = [
        _read_json_object_or_empty(path / "config.json").get("max_position_embeddings"),
        _read_json_object_or_empty(path / "sentence_bert_config.json").get("max_seq_length"),
        _read_json_object_or_empty(path / "tokenizer_config.json").get("model_max_length"),
    ]
    return min(
        [limit for limit in limits if isinstance(limit, int) and limit > 0] or [DEFAULT_EMBEDDING_MODEL_TOKEN_LIMIT]
    )


def onnx_inputs_from_encoding(encoding: Encoding, names: Set[str]) -> dict[str, NDArray[np.int64]]:
    """One text or pair, (1, tokens), by the names that the model knows."""
    given = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
    return {name: np.array([values], np.int64) for name, values in given.items() if name in names}


class ModelDirectoryEmbeddingEngine:
    """The model in ONNX Runtime, a text at a time: so a text has one vector, whatever it is embedded with."""

    def __init__(self, directory: EmbeddingModelDirectory, session: InferenceSession, tokenizer: Tokenizer) -> None:
        """`tokenizer` cuts off what the model does not read."""
        self.tokenizer = tokenizer
        self._directory = directory
        self._session = session
        self._inputs = {given.name for given in session.get_inputs()}

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """float32, (n, dimension), unit rows. Raises `EmbeddingUnavailable` for an answer of another shape."""
        vectors = np.empty((len(texts), self._directory.dimension), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            row[:] = self._embed_text(text)
        return vectors

    def _embed_text(self, text: str) -> NDArray[np.float32]:
        feed = onnx_inputs_from_encoding(self.tokenizer.encode(text), self._inputs)
        output = np.asarray(self._session.run(None, feed)[0][0], np.float32)
        if output.ndim == 2:  # the tokens' vectors, not yet pooled
            output = output[0] if self._directory.pooling == "cls" else output.mean(axis=0)
        length = float(np.linalg.norm(output))
        if output.shape != (self._directory.dimension,) or not np.isfinite(length) or length == 0:
            reason = f"its answer is no vector of {self._directory.dimension} numbers (shape {output.shape})"
            raise EmbeddingUnavailable(self._directory.name_with_content_hash, reason)
        return output / np.float32(length)


def load_directory_embedding_engine(directory: EmbeddingModelDirectory) -> ModelDirectoryEmbeddingEngine:
    """Loads the model and embeds a word. Raises `EmbeddingUnavailable`, and whatever ONNX Runtime and tokenizers do."""
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(directory.path / TOKENIZER_FILE_NAME))
    tokenizer.no_padding()
    tokenizer.enable_truncation(directory.max_tokens)
    session = InferenceSession(str(directory.onnx_file), onnx_session_options(), providers=["CPUExecutionProvider"])
    engine = ModelDirectoryEmbeddingEngine(directory, session, tokenizer)
    engine.embed(["Madeleine"])
    return engine


def _pooling_mode_from_config(path: Path, config: dict[str, Any]) -> Pooling:
    if not config or config.get("pooling_mode_mean_tokens"):
        return "mean"
    if config.get("pooling_mode_cls_token"):
        return "cls"
    asked = next((key for key, value in config.items() if key.startswith("pooling_mode_") and value is True), "none")
    raise InvalidInput(f"The model in {path} pools by {asked}; known are pooling_mode_mean_tokens and _cls_token.")


def _read_json_object_or_empty(file: Path) -> dict[str, Any]:
    """{} if there is none. Raises `InvalidInput` if it cannot be read."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}


def _sampled_file_blocks_to_hash(file: Path) -> Iterator[bytes]:
    size = file.stat().st_size
    yield f"{file.name} {size}".encode()
    with file.open("rb") as opened:
        for start in range(0, size, max(size // HASHED_BLOCKS, HASHED_BLOCK_BYTES)):
            opened.seek(start)
            yield opened.read(HASHED_BLOCK_BYTES)
