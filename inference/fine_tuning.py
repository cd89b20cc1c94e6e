"""The pipeline that fits an embedding model to a person's own documents (spec O7): questions, hard negatives, a linear
adapter, and a test on documents that were kept apart. An adapter that does not help there is refused.

Questions come from rules that know no language, or from a language model:
- a sentence of a passage asks for the rest of it (the inverse cloze task, arXiv:1906.00300);
- a heading asks for its section;
- some of the content words of a sentence ask for its passage.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, model_validator

from madeleine.inference.adapted import write_adapted_embedding_model
from madeleine.inference.evaluation import (
    EmbedTexts,
    LabelledQuery,
    embed_all,
    evaluate_query_vectors,
    ndcg_at_k,
    read_json_lines,
)
from madeleine.inference.linear_adapter import (
    TRIED_ADAPTER_BLEND_SHARES,
    AdapterTrainingParameters,
    TrainingVectors,
    blend_with_identity_matrix,
    hard_negative_passage_indices,
    train_adapter,
)
from madeleine.memory.errors import InvalidInput, MadeleineError
from madeleine.memory.text.content_words import content_words
from madeleine.memory.text.sentences import split_sentences
from madeleine.memory.vector_space import normalize_vector_rows

TRAINING_DOCUMENT_SUFFIXES = (".md", ".txt", ".jsonl")
MAX_TRAINING_PASSAGE_CHARS = 1_000
"""The default model reads about so much."""
MIN_TRAINING_QUESTION_CHARS = 12
HELD_OUT_SHARE, CHOICE_SHARE = 0.2, 0.1
"""Of the passages: those that test the adapter, and those by which its strength is chosen."""
MIN_HELD_OUT_QUERIES = 30
NEGATIVES_OF_QUERY, SKIPPED_NEGATIVES = 4, 1
RESAMPLES, LOWER_BOUND = 1_000, 0.025
"""Of the paired differences on the held-out queries: the adapter must help with a certainty of 97.5 %."""

GenerateQuestionsAboutText = Callable[[str], Awaitable[Sequence[str]]]
"""Questions that a passage answers, by a language model."""


def _require_path_without_parent_or_drive(path: str) -> str:
    if ".." in Path(path).parts or "\\" in path or path[1:2] == ":":
        raise ValueError("it must be a path without .. and without a drive")
    return path


NotBlankStr = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
SafePath = Annotated[NotBlankStr, AfterValidator(_require_path_without_parent_or_drive)]


class EmbeddingFineTuneConfig(BaseModel):
    """As spec O7 has it. `checkpoint_path` is the directory of the adapted model, by which it is named."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    enabled: bool = False
    checkpoint_path: SafePath | None = None
    base_model: NotBlankStr | None = None
    training_data_dir: SafePath | None = None

    @model_validator(mode="after")
    def _require_model_paths_if_enabled(self) -> EmbeddingFineTuneConfig:
        if self.enabled and not (self.checkpoint_path and self.base_model):
            raise ValueError("enabled needs checkpoint_path and base_model")
        return self


class FineTuningPipeline(Protocol):
    """The stages of spec O7. Each writes its result, and returns the path of it."""

    async def generate_training_data(self, source_dir: str) -> Path: ...

    async def mine_hard_negatives(self, training_data: Path) -> Path: ...

    async def fine_tune(self, training_data: Path, base_model: str) -> Path: ...


class AdapterWithoutProvenGain(MadeleineError):
    """The adapter does not help on documents that were kept apart; nothing was written."""


async def run_fine_tuning(
    pipeline: FineTuningPipeline, source_dir: str, base_model: str, report: Callable[[str], None]
) -> Path:
    """All stages; `report` is told of each. Raises `InvalidInput`, `AdapterWithoutProvenGain`."""
    report("writing questions")
    questions = await pipeline.generate_training_data(source_dir)
    report("embedding the questions and their passages")
    mined = await pipeline.mine_hard_negatives(questions)
    report("training")
    return await pipeline.fine_tune(mined, base_model)


class LinearAdapterFineTuningPipeline:
    """`FineTuningPipeline` on the processor. `embed`: of the base model."""

    def __init__(
        self,
        config: EmbeddingFineTuneConfig,
        embed: EmbedTexts,
        work_dir: Path,
        *,
        write_questions: GenerateQuestionsAboutText | None = None,
        training: AdapterTrainingParameters | None = None,
    ) -> None:
        if not config.checkpoint_path:
            raise InvalidInput("The adapter needs a directory to be written to.")
        self._checkpoint = Path(config.checkpoint_path)
        self._embed = embed
        self._work_dir = work_dir
        self._write_questions = write_questions
        self._training = training or AdapterTrainingParameters()
        self.result: dict[str, Any] = {}
        """What `fine_tune` has measured on the held-out part: queries, base and adapted nDCG@10, the lower bound of the
        gain."""

    async def generate_training_data(self, source_dir: str) -> Path:
        """JSON lines of questions, each with its passage and its part: train, choice or held_out. Raises
        `InvalidInput` if the documents are too few."""
        passages = await asyncio.to_thread(lambda: list(dict.fromkeys(read_training_passages(Path(source_dir)))))
        rows = []
        for heading, text in passages:
            questions = list(make_question_and_answer_pairs(heading, text))
            if self._write_questions and questions:
                [(_, answer), *_] = questions
                questions += [(question, answer) for question in await self._write_questions(answer)]
            rows += [
                {"part": _data_split_of_passage(text), "query": question, "passage": answer}
                for question, answer in questions
            ]
        counts = {part: sum(row["part"] == part for row in rows) for part in ("train", "choice", "held_out")}
        if counts["held_out"] < MIN_HELD_OUT_QUERIES or not counts["choice"]:
            raise InvalidInput(
                f"The documents give {len(rows)} questions, of which {counts['held_out']} would test the adapter; "
                f"at least {MIN_HELD_OUT_QUERIES} are needed. Give more documents."
            )
        return await asyncio.to_thread(_write_json_lines, self._work_dir / "questions.jsonl", rows)

    async def mine_hard_negatives(self, training_data: Path) -> Path:
        """The training data, each question with passages that the base model finds like it and that are not its own."""
        return await asyncio.to_thread(self._mine_hard_negatives_in_thread, training_data)

    async def fine_tune(self, training_data: Path, base_model: str) -> Path:
        """The directory of the adapted model. Raises `AdapterWithoutProvenGain`."""
        return await asyncio.to_thread(self._fine_tune_in_thread, training_data, base_model)

    def _mine_hard_negatives_in_thread(self, training_data: Path) -> Path:
        rows = [dict(row) for row in read_json_lines(training_data)]
        passages, positives = _unique_passages_and_row_indices(rows)
        vectors = self._read_or_embed_vectors("passages", passages)
        queries = self._read_or_embed_vectors("queries", [row["query"] for row in rows])
        count = min(NEGATIVES_OF_QUERY, len(passages) - SKIPPED_NEGATIVES - 1)
        mined = hard_negative_passage_indices(
            vectors, queries, positives, skipped=SKIPPED_NEGATIVES, count=max(count, 0)
        )
        for row, negatives in zip(rows, mined, strict=True):
            row["negatives"] = [int(at) for at in negatives]
        return _write_json_lines(self._work_dir / "mined.jsonl", rows)

    def _fine_tune_in_thread(self, training_data: Path, base_model: str) -> Path:
        rows = list(read_json_lines(training_data))
        passages, positives = _unique_passages_and_row_indices(rows)
        vectors = self._read_or_embed_vectors("passages", passages)
        queries = self._read_or_embed_vectors("queries", [row["query"] for row in rows])
        negatives = np.array([row["negatives"] for row in rows], np.intp)
        parts = np.array([row["part"] for row in rows])
        held_out_passages = np.unique(positives[parts == "held_out"])
        # A passage that tests must not be a negative either: the adapter would have been taught about it.
        train = (parts == "train") & ~np.isin(negatives, held_out_passages).any(axis=1)
        data = TrainingVectors(vectors, queries[train], positives[train], negatives[train])
        matrix = train_adapter(data, self._training)

        def gains(part: str, adapter: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            chosen = parts == part
            labelled = [LabelledQuery("", frozenset([str(at)])) for at in positives[chosen]]
            ids = [str(at) for at in range(len(passages))]
            before = evaluate_query_vectors(ids, vectors, labelled, queries[chosen])
            after = evaluate_query_vectors(
                ids,
                normalize_vector_rows(vectors @ adapter),
                labelled,
                normalize_vector_rows(queries[chosen] @ adapter),
            )
            base, adapted = ([ndcg_at_k(one.ranks, 1, at=10) for one in results] for results in (before, after))
            return np.array(base), np.array(adapted)

        def gain_with(share: float) -> float:
            base, adapted = gains("choice", blend_with_identity_matrix(matrix, share))
            return float((adapted - base).mean())

        share = max(TRIED_ADAPTER_BLEND_SHARES, key=gain_with)
        adapter = blend_with_identity_matrix(matrix, share)
        base, adapted = gains("held_out", adapter)
        lower = _bootstrap_lower_bound_of_mean(adapted - base, seed=self._training.seed)
        self.result = {
            "queries": len(base),
            "base_ndcg": round(float(base.mean()), 4),
            "adapted_ndcg": round(float(adapted.mean()), 4),
            "gain_at_least": round(lower, 4),
            "share": share,
        }
        if lower <= 0:
            raise AdapterWithoutProvenGain(
                f"On {len(base)} questions that were kept apart the adapter has an nDCG@10 of "
                f"{100 * adapted.mean():.1f}, the model alone {100 * base.mean():.1f}: it does not help for certain, "
                "and was not written."
            )
        write_adapted_embedding_model(self._checkpoint, base_model, adapter, self.result)
        return self._checkpoint

    def _read_or_embed_vectors(self, kind: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Kept beside the training data: two stages need the same vectors."""
        file = self._work_dir / f"{kind}.npy"
        if file.exists():
            return np.asarray(np.load(file), np.float32)
        vectors = embed_all(self._embed, texts)
        np.save(file, vectors)
        return vectors


# --- documents and questions --------------------------------------------------------------------------------------


def read_training_passages(folder: Path) -> Iterator[tuple[str, str]]:
    """(heading, text) of each passage of the folder's documents: Markdown and texts by paragraphs, JSON lines by their
    `text`. Raises `InvalidInput` for a folder without documents."""
    files = [file for file in sorted(folder.rglob("*")) if file.suffix in TRAINING_DOCUMENT_SUFFIXES and file.is_file()]
    if not files:
        raise InvalidInput(f"{folder} holds no documents ({', '.join(TRAINING_DOCUMENT_SUFFIXES)}).")
    for file in files:
        if file.suffix == ".jsonl":
            yield from (
                ("", str(row["text"])[:MAX_TRAINING_PASSAGE_CHARS]) for row in read_json_lines(file) if row.get("text")
            )
            continue
        heading = ""
        for block in file.read_text("utf-8", errors="replace").split("\n\n"):
            text = block.strip()
            if text.startswith("#"):
                first, _, text = text.partition("\n")
                heading = first.lstrip("#").strip()
            if text.strip():
                yield heading, text.strip()[:MAX_TRAINING_PASSAGE_CHARS]


def make_question_and_answer_pairs(heading: str, text: str) -> Iterator[tuple[str, str]]:
    """(question, the text that answers it), by rules. The same at each call, and one text for all its questions: none
    may be taken for a wrong answer."""
    chance = random.Random(text)
    sentences = [sentence.strip() for sentence in split_sentences(text) if sentence.strip()]
    questions = [heading]
    if len(sentences) > 1:
        questions.append(sentences.pop(chance.randrange(len(sentences))))
        text = " ".join(sentences)
    words = content_words(chance.choice(sentences)) if sentences else ()
    kept = sorted(chance.sample(range(len(words)), k=(len(words) + 1) // 2))
    questions.append(" ".join(words[at] for at in kept))
    yield from ((question, text) for question in questions if len(question) >= MIN_TRAINING_QUESTION_CHARS)


def _data_split_of_passage(passage: str) -> str:
    """By the passage alone, so that none is in two parts."""
    place = int.from_bytes(hashlib.sha256(passage.encode()).digest()[:4], "big") / 2**32
    return "held_out" if place < HELD_OUT_SHARE else "choice" if place < HELD_OUT_SHARE + CHOICE_SHARE else "train"


def _unique_passages_and_row_indices(rows: Sequence[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """The different passages, and of each row the place of its own."""
    places = {passage: at for at, passage in enumerate(dict.fromkeys(row["passage"] for row in rows))}
    return list(places), np.array([places[row["passage"]] for row in rows], np.intp)


def _bootstrap_lower_bound_of_mean(values: NDArray[np.float64], *, seed: int) -> float:
    """By the bootstrap."""
    chance = np.random.default_rng(seed)
    means = [values[chance.integers(0, len(values), len(values))].mean() for _ in range(RESAMPLES)]
    return float(np.quantile(means, LOWER_BOUND))


def _write_json_lines(file: Path, rows: Sequence[Any]) -> Path:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file
