"""Whether a text is dense: code, structured data, identifiers, which a summary would lose (spec O8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

TextDensityClass = Literal["sparse", "dense"]
ArchivalMode = Literal["abstractive", "extractive"]
"""A group of sparse texts is summarised, of a group of dense ones facts are kept word for word (spec O8)."""

MIN_DENSITY_SCORE_OF_DENSE_TEXT = 0.25
"""From it a text is dense. Of 24 labelled texts (`test_density.py`) the densest narrative scores 0.13, the sparsest
technical one 0.37."""

_CODE_MARK_PATTERN = re.compile(
    r"[{};]\s*$|=>|->|==|!=|&&|\|\||\w\(.*\)|^\s*(?:def|class|import|from|return|const|let|var|func|SELECT|INSERT|sudo)\b"
    r"|^\s*[$>#]\s+\S|`[^`]+`|(?:^|\s)--?[a-z][\w-]*|\w\s*[:+*/-]?=\s*\S",
    re.MULTILINE,
)
_STRUCTURED_LINE_PATTERN = re.compile(
    r"^\s*(?:[-*•]\s|\d+[.)]\s|#{1,6}\s|\|.*\||[\[{<]|[\"'\w.-]{1,40}\s*[:=]\s*\S)|[\"']\s*:\s|</?\w+[^>]*>"
)
_IDENTIFIER = re.compile(
    r"\w*[a-z0-9]_[a-z0-9]\w*|[a-z]+[A-Z]\w*|[A-Z]{2,}[-_]?\d\w*|\w+(?:[./\\:@-]\w+)*[./\\@]\w+\S*|[/~.]\S*/\S+"
    r"|[0-9a-f]{7,}(?:-[0-9a-f]+)*|0x[0-9a-f]+|v?\d+\.\d+(?:\.\d+)+\S*|--?[a-z][\w-]*=?\S*|\w+\(\)",
)
_CHARS_STRIPPED_FROM_WORD_EDGES = "\"'`,;()[]{}<>!?"


@dataclass(frozen=True, slots=True)
class DensitySignals:
    """Five signals, each in [0, 1] (spec O8)."""

    code: float
    structure: float
    identifiers: float
    numbers: float
    lines: float

    @property
    def score(self) -> float:
        """Their weighted sum, in [0, 1]."""
        return 0.25 * self.code + 0.2 * self.structure + 0.25 * self.identifiers + 0.2 * self.numbers + 0.1 * self.lines


def density_signals(text: str) -> DensitySignals:
    """`code` and `structure`: the share of lines with its marks; `identifiers` and `numbers`: four times the share of
    words that are or hold one; `lines`: the share of short lines among several."""
    lines = [line for line in text.splitlines() if line.strip()]
    words = [word for raw in text.split() if (word := raw.strip(_CHARS_STRIPPED_FROM_WORD_EDGES).rstrip(".:"))]
    if not lines or not words:
        return DensitySignals(0.0, 0.0, 0.0, 0.0, 0.0)
    identifiers = sum(_IDENTIFIER.fullmatch(word) is not None for word in words)
    numbers = sum(any(sign.isdigit() for sign in word) for word in words)
    short = sum(len(line) < 60 for line in lines) if len(lines) > 1 else 0
    return DensitySignals(
        code=sum(_CODE_MARK_PATTERN.search(line) is not None for line in lines) / len(lines),
        structure=sum(_STRUCTURED_LINE_PATTERN.search(line) is not None for line in lines) / len(lines),
        identifiers=min(1.0, 4 * identifiers / len(words)),
        numbers=min(1.0, 4 * numbers / len(words)),
        lines=short / len(lines),
    )


def classify_density(text: str, *, threshold: float = MIN_DENSITY_SCORE_OF_DENSE_TEXT) -> TextDensityClass:
    return "dense" if density_signals(text).score >= threshold else "sparse"


def extractive_or_abstractive_mode_for_texts(
    texts: Sequence[str], *, threshold: float = MIN_DENSITY_SCORE_OF_DENSE_TEXT
) -> ArchivalMode:
    """Extractive if most of the texts are dense; of as many of either too, for that loses nothing."""
    dense = sum(classify_density(text, threshold=threshold) == "dense" for text in texts)
    return "extractive" if 2 * dense >= len(texts) and dense else "abstractive"
