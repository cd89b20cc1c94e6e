"""Models of the tests' own: a re-ranker that is told what to say, a real cross-encoder that counts common words, and a
real embedding model that knows words by numbers drawn at random."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from madeleine.inference.adapted import write_adapted_embedding_model
from madeleine.inference.default_model.english_encoder import ENGLISH_ENCODER_FILES, TOKENIZER_FILE
from madeleine.memory.errors import RerankerUnavailable

_WORD = re.compile(r"\w+")


class WordReranker:
    """`Reranker`: the share of the query's words that a text holds, or what `says` says of a text with that word."""

    def __init__(self, says: Mapping[str, float] | None = None) -> None:
        self.says = says or {}
        self.available = True
        self.asked: list[tuple[str, list[str]]] = []

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        if not self.available:
            raise RerankerUnavailable("words", "it was told to be away")
        self.asked.append((query, list(texts)))
        return [self._score(query, text) for text in texts]

    def _score(self, query: str, text: str) -> float:
        words = set(_WORD.findall(text.casefold()))
        for word, score in self.says.items():
            if word in words:
                return score
        wanted = set(_WORD.findall(query.casefold()))
        return len(wanted & words) / max(1, len(wanted))


def cross_encoder(directory: Path, *, answers: Literal["a number", "a column", "two classes"] = "a column") -> Path:
    """An ONNX model with its tokenizer, as sentence-transformers exports it: a pair's score is the number of common
    tokens, less 2. It `answers` (1,), (1, 1), or with (1, 2), of which the second says that the text fits.

    equal[i, j] = (ids[i] = ids[j]) × (i is of the query) × (j is of the text);  score = Σ equal − 2
    """
    (directory / "onnx").mkdir(parents=True)
    (directory / "onnx" / "model.onnx").write_bytes(_model(answers))
    (directory / "tokenizer.json").write_bytes(ENGLISH_ENCODER_FILES.checked_path(TOKENIZER_FILE).read_bytes())
    (directory / "config.json").write_text(json.dumps({"max_position_embeddings": 256}))
    return directory


def adapted_model(directory: Path, base: Path | str, *, dimension: int = 16) -> Path:
    """`base` with an adapter: its axes in another order, so that all cosines stay."""
    matrix = np.roll(np.eye(dimension, dtype=np.float32), 1, axis=1)
    write_adapted_embedding_model(directory, str(base), matrix, {})
    return directory


def embedding_model(directory: Path, *, dimension: int = 16, pooled: bool = False, seed: int = 7) -> Path:
    """An ONNX model with its tokenizer, as sentence-transformers exports it: a word's vector is drawn at random.
    `pooled`: whether the mean of the words' vectors is taken in the model, or left to the caller."""
    directory.mkdir(parents=True)
    words = np.random.default_rng(seed).standard_normal((30522, dimension)).astype("<f4")
    output = "sentence_embedding" if pooled else "last_hidden_state"
    graph = (
        _node("Gather", "words input_ids", "last_hidden_state")
        + (_node("ReduceMean", "last_hidden_state", output, axes=[1], keepdims=0) if pooled else b"")
        + _field(2, "words")
        + _field(
            5, b"".join(_field(1, size) for size in words.shape)
            + _field(2, FLOAT) + _field(8, "words") + _field(9, words.tobytes()),
        )
        + _value(11, "input_ids", INT64, ["batch", "tokens"])
        + _value(12, output, FLOAT, ["batch", dimension] if pooled else ["batch", "tokens", dimension])
    )  # fmt: skip
    (directory / "model.onnx").write_bytes(_model_file(graph))
    (directory / "tokenizer.json").write_bytes(ENGLISH_ENCODER_FILES.checked_path(TOKENIZER_FILE).read_bytes())
    (directory / "config.json").write_text(json.dumps({"hidden_size": dimension, "max_position_embeddings": 256}))
    return directory


# --- ONNX, as far as these models go: protocol buffers by hand ----------------------------------------------------

FLOAT, INT64 = 1, 7


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    body = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _attribute(name: str, value: int | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    return _field(1, name) + b"".join(_field(8, one) for one in value) + _field(20, 7)


def _node(kind: str, inputs: str, output: str, **attributes: int | Sequence[int]) -> bytes:
    given = b"".join(_field(5, _attribute(name, value)) for name, value in attributes.items())
    return _field(1, b"".join(_field(1, one) for one in inputs.split()) + _field(2, output) + _field(4, kind) + given)


def _node_of(columns: Sequence[str], output: str) -> bytes:
    """Columns side by side."""
    given = b"".join(_field(1, one) for one in columns) + _field(2, output) + _field(4, "Concat")
    return _field(1, given + _field(5, _attribute("axis", 1)))


def _value(number: int, name: str, kind: int, dims: Sequence[str | int]) -> bytes:
    shape = b"".join(_field(1, _field(1, dim) if isinstance(dim, int) else _field(2, dim)) for dim in dims)
    return _field(number, _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape))))


def _constant(name: str, kind: int, values: Sequence[float]) -> bytes:
    raw = struct.pack(f"<{len(values)}{'f' if kind == FLOAT else 'q'}", *values)
    return _field(5, _field(1, len(values)) + _field(2, kind) + _field(8, name) + _field(9, raw))


def _node_model() -> bytes:
    return b"".join([
        _node("Cast", "token_type_ids", "of_text", to=FLOAT),
        _node("Sub", "one of_text", "of_query"),
        _node("Unsqueeze", "input_ids first", "across"),
        _node("Unsqueeze", "input_ids second", "down"),
        _node("Equal", "across down", "same"),
        _node("Cast", "same", "equal", to=FLOAT),
        _node("Unsqueeze", "of_text first", "text_mask"),
        _node("Unsqueeze", "of_query second", "query_mask"),
        _node("Mul", "equal text_mask", "equal_in_text"),
        _node("Mul", "equal_in_text query_mask", "common"),
        _node("ReduceSum", "common both", "counted", keepdims=0),
        _node("Sub", "counted two", "less"),
    ])  # fmt: skip


def _model(answers: str) -> bytes:
    column = _node("Unsqueeze", "less first", "column")
    forms: dict[str, tuple[str, list[str | int], bytes]] = {
        "a number": ("less", ["batch"], b""),
        "a column": ("column", ["batch", 1], column),
        "two classes": (
            "both classes", ["batch", 2],
            column + _node("Sub", "column column", "zeros") + _node_of(["zeros", "column"], "both classes"),
        ),
    }  # fmt: skip
    output, shape, last = forms[answers]
    graph = (
        _node_model()
        + last
        + _field(2, "common words")
        + _constant("one", FLOAT, [1.0])
        + _constant("two", FLOAT, [2.0])
        + _constant("first", INT64, [1])
        + _constant("second", INT64, [2])
        + _constant("both", INT64, [1, 2])
        + _value(11, "input_ids", INT64, ["batch", "tokens"])
        + _value(11, "token_type_ids", INT64, ["batch", "tokens"])
        + _value(12, output, FLOAT, shape)
    )
    return _model_file(graph)


def _model_file(graph: bytes) -> bytes:
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13))


def onnx_session_options(engine: Any) -> Any:
    """Those that ONNX Runtime works by, of an engine of fastembed or of a directory."""
    session = engine.session if hasattr(engine, "session") else engine.model.model
    return session.get_session_options()
