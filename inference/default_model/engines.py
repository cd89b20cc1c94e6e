"""The default model at work: the encoder of English and the one of many languages, whose vectors stand side by side.

    vector = [√share × English; √(1 − share) × multilingual], of unit length

`share` is what the encoder of English is worth in the language of the text: 2/3 in English, less in others as it reads
them, 0 where it reads nothing (`memory.vector_space`). The product of two vectors is then the mean of what either
encoder finds, between texts of two languages mostly what the multilingual one does. Measured in ADR 106.

Both embed a text at a time: so a text has one vector, whatever it is embedded with (ADR 40).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from madeleine.inference import PACKAGED_MODEL_NAME, space_measurement
from madeleine.inference.default_model import english_encoder, multilingual_encoder
from madeleine.inference.default_model.model_files import DamagedModelFile, ModelFiles
from madeleine.inference.default_model.sources import find_english_encoder_source, find_multilingual_encoder_source
from madeleine.inference.loading import onnx_session_options
from madeleine.memory.errors import EmbeddingUnavailable
from madeleine.memory.vector_space import VectorSpace

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from sentencepiece import SentencePieceProcessor
    from tokenizers import Tokenizer

DIMENSION = english_encoder.WIDTH + multilingual_encoder.WIDTH
REINSTALL_REMEDY = "install madeleine-memory again (in a checkout: make demo)"


class EnglishEncoder:
    """all-MiniLM-L6-v2 in ONNX Runtime."""

    def __init__(self, session: InferenceSession, tokenizer: Tokenizer) -> None:
        """`tokenizer`: without truncation, so that it counts the tokens of long texts, too; a second one would take
        10 MB."""
        self.session = session
        self.tokenizer = tokenizer

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """float32, (n, 384), unit rows."""
        vectors = np.empty((len(texts), english_encoder.WIDTH), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            ids = self.tokenizer.encode(text).ids
            if len(ids) > english_encoder.MAX_ENGLISH_ENCODER_TOKENS:
                ids = [*ids[: english_encoder.MAX_ENGLISH_ENCODER_TOKENS - 1], ids[-1]]  # the last one closes a text
            row[:] = self.session.run(None, {"ids": np.array([ids], np.int64)})[0][0]
        return vectors


class MultilingualEncoder:
    """The Universal Sentence Encoder in ONNX Runtime. `piece_vectors`: uint8, (pieces, 512), mapped from their file."""

    def __init__(
        self, session: InferenceSession, pieces: SentencePieceProcessor, piece_vectors: NDArray[np.uint8]
    ) -> None:
        self.session = session
        self._pieces = pieces
        self._piece_vectors = piece_vectors

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """float32, (n, 512), unit rows."""
        vectors = np.empty((len(texts), multilingual_encoder.WIDTH), np.float32)
        most = multilingual_encoder.MAX_MULTILINGUAL_ENCODER_PIECES - 2
        for row, text in zip(vectors, texts, strict=True):
            inner = self._pieces.EncodeAsIds(text)[:most]
            ids = np.array([multilingual_encoder.FIRST_PIECE, *inner, multilingual_encoder.LAST_PIECE], np.int64)
            row[:] = self.session.run(None, {"ids": ids, "rows": self._piece_vectors[ids]})[0][0]
        return vectors


class BothEncoders:
    """`english_space`: that of the encoder of English, which tells the language of a text. `english_shares`: float32,
    (languages,)."""

    def __init__(
        self,
        english: EnglishEncoder,
        multilingual: MultilingualEncoder,
        english_space: VectorSpace,
        english_shares: NDArray[np.float32],
    ) -> None:
        self.english = english
        self.multilingual = multilingual
        self._english_space = english_space
        self._english_shares = english_shares
        self._beside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="multilingual embedding")

    @property
    def tokenizer(self) -> Tokenizer:
        return self.english.tokenizer

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """float32, (n, 896), unit rows."""
        multilingual = self._beside.submit(self.multilingual.embed, texts)
        english = self.english.embed(texts)
        languages = self._english_space.row_numbers_of_nearest_language_means(english)
        shares = self._english_shares[languages][:, None]
        return np.concatenate(
            [np.sqrt(shares) * english, np.sqrt(1 - shares) * multilingual.result()], axis=1, dtype=np.float32
        )


def load_both_encoders() -> BothEncoders:
    """The default model. Raises `EmbeddingUnavailable`."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        multilingual = beside.submit(load_multilingual_encoder)
        english = load_english_encoder()
        return BothEncoders(
            english,
            multilingual.result(),
            space_measurement.english_vector_space(),
            np.load(space_measurement.ENGLISH_SHARES_FILE),
        )


def load_english_encoder() -> EnglishEncoder:
    """Raises `EmbeddingUnavailable` if its files are missing or damaged, and cannot be made."""
    from tokenizers import Tokenizer

    paths = _checked_or_made_anew(
        english_encoder.ENGLISH_ENCODER_FILES,
        find_english_encoder_source,
        english_encoder.write_english_encoder_files,
    )
    tokenizer = Tokenizer.from_file(str(paths[english_encoder.TOKENIZER_FILE]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return EnglishEncoder(_session_of_file(paths[english_encoder.ENGLISH_ENCODER_FILE]), tokenizer)


def load_multilingual_encoder() -> MultilingualEncoder:
    """Raises `EmbeddingUnavailable` if its files are missing or damaged, and cannot be made."""
    from sentencepiece import SentencePieceProcessor

    paths = _checked_or_made_anew(
        multilingual_encoder.MULTILINGUAL_ENCODER_FILES,
        find_multilingual_encoder_source,
        multilingual_encoder.write_multilingual_encoder_files,
    )
    return MultilingualEncoder(
        _session_of_file(paths[multilingual_encoder.MULTILINGUAL_ENCODER_FILE]),
        SentencePieceProcessor(model_file=str(paths[multilingual_encoder.PIECE_MODEL_FILE])),
        np.load(paths[multilingual_encoder.PIECE_VECTORS_FILE], mmap_mode="r"),
    )


def _session_of_file(path: Path) -> InferenceSession:
    """By its path: of its bytes a session keeps a copy of 23 MB."""
    from onnxruntime import GraphOptimizationLevel, InferenceSession

    options = onnx_session_options()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL  # the file has the operators to be run
    return InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _checked_or_made_anew(
    files: ModelFiles, find_source: Callable[[], Path | None], write: Callable[[Path], None]
) -> dict[str, Path]:
    """Paths of the files, by their names. If one is missing, damaged or of another version, as in a checkout, they are
    made anew where their source is installed."""
    try:
        try:
            return files.checked_paths()
        except (OSError, DamagedModelFile):
            if (source := find_source()) is None:
                raise
            write(source)
            return files.checked_paths()
    except DamagedModelFile as error:
        raise EmbeddingUnavailable(PACKAGED_MODEL_NAME, f"{error}; {REINSTALL_REMEDY}") from error
    except OSError as error:
        raise EmbeddingUnavailable(
            PACKAGED_MODEL_NAME, f"its files cannot be had ({error}); {REINSTALL_REMEDY}"
        ) from error
