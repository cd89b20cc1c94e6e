"""A cross-encoder in a directory of its own, as sentence-transformers exports it to ONNX (spec L2): `model.onnx` (or
`onnx/model.onnx`) and `tokenizer.json`; where it is there, `config.json` says how many tokens the model reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from madeleine.inference.loading import onnx_session_options
from madeleine.inference.model_directory import (
    TOKENIZER_FILE_NAME,
    find_onnx_file,
    max_tokens_of_model_directory,
    onnx_inputs_from_encoding,
)

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class CrossEncoderDirectory:
    path: Path
    onnx_file: Path
    max_tokens: int


def cross_encoder_directory_from_path(name: str) -> CrossEncoderDirectory | None:
    """The directory that `name` is the path of; None if it is none. Raises `InvalidInput` for one that lacks what a
    model needs."""
    path = Path(name).expanduser()
    if not path.is_dir():
        return None
    onnx_file = find_onnx_file(path, setting="MADELEINE_RERANKER")
    return CrossEncoderDirectory(path.resolve(), onnx_file, max_tokens_of_model_directory(path))


class DirectoryCrossEncoder:
    """`inference.reranking.CrossEncoder`, a pair at a time: a pair has one score, whatever it is scored with."""

    def __init__(self, session: InferenceSession, tokenizer: Tokenizer) -> None:
        """`tokenizer` cuts off what the model does not read."""
        self.session = session
        self._tokenizer = tokenizer
        self._inputs = {given.name for given in session.get_inputs()}

    def rerank(self, query: str, documents: Iterable[str], batch_size: int = 1) -> list[float]:
        """Raises `ValueError` for a model whose answer is not one number, or two of which the second says that the text
        fits."""
        return [self._score(query, document) for document in documents]

    def _score(self, query: str, document: str) -> float:
        feed = onnx_inputs_from_encoding(self._tokenizer.encode(query, document), self._inputs)
        output = np.asarray(self.session.run(None, feed)[0], np.float32).ravel()
        if output.size not in (1, 2):
            raise ValueError(f"its answer to a pair is {output.size} numbers; a cross-encoder gives one or two")
        return float(output[0] if output.size == 1 else output[1] - output[0])


def load_directory_cross_encoder(directory: CrossEncoderDirectory) -> DirectoryCrossEncoder:
    """Loads the model and scores a pair. Raises whatever ONNX Runtime and tokenizers do, and `ValueError`."""
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(directory.path / TOKENIZER_FILE_NAME))
    tokenizer.no_padding()
    tokenizer.enable_truncation(directory.max_tokens)
    session = InferenceSession(str(directory.onnx_file), onnx_session_options(), providers=["CPUExecutionProvider"])
    encoder = DirectoryCrossEncoder(session, tokenizer)
    encoder.rerank("Madeleine", ["Madeleine"])
    return encoder
