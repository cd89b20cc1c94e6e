"""The hand-written facts, and made-up memories around them, with the day of the half-year on which each is told.

`chains.jsonl`: a fact in two to four versions. `lookalikes.jsonl`: two facts that are worded alike and both true.
`older.jsonl`: questions whose answer is not the newest memory of its subject. Each belongs to one of three roles, and a
role is one being. They were written before the rules that they measure.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.made_up_sentences import sentences

HERE = Path(__file__).parent
DAYS = 181
ROLES = ("assistant", "engineer", "company")


@dataclass(frozen=True, slots=True)
class Told:
    """A text and the day on which it is told, from 0."""

    text: str
    day: int


@dataclass(frozen=True, slots=True)
class Chain:
    """`versions`, oldest first. `past_question` is asked as of `past_day`, when version `past_answer` was true."""

    role: str
    half: int
    language: str
    versions: tuple[Told, ...]
    question: str
    past_question: str
    past_day: int
    past_answer: int


@dataclass(frozen=True, slots=True)
class LookAlike:
    """`questions` in the order of `facts`: each asks for one of the two."""

    role: str
    facts: tuple[Told, Told]
    questions: tuple[str, str]


@dataclass(frozen=True, slots=True)
class OlderAnswer:
    role: str
    memories: tuple[Told, ...]
    question: str
    answer: int


def chains(role: str) -> list[Chain]:
    """The odd lines are half 0, on which the rules were developed; the even ones half 1."""
    return [
        Chain(
            role=role,
            half=at % 2,
            language=row["lang"],
            versions=tuple(Told(**version) for version in row["versions"]),
            question=row["question"],
            past_question=row["past_question"]["text"],
            past_day=row["past_question"]["day"],
            past_answer=row["past_question"]["answer"],
        )
        for at, row in enumerate(_rows("chains"))
        if row["role"] == role
    ]


def lookalikes(role: str) -> list[LookAlike]:
    return [
        LookAlike(
            role=role,
            facts=(Told(**row["first"]), Told(**row["second"])),
            questions=(row["question_first"], row["question_second"]),
        )
        for row in _rows("lookalikes")
        if row["role"] == role
    ]


def older_answers(role: str) -> list[OlderAnswer]:
    return [
        OlderAnswer(role, tuple(Told(**memory) for memory in row["memories"]), row["question"], row["answer"])
        for row in _rows("older")
        if row["role"] == role
    ]


def fillers(count: int, *, seed: int = 12) -> Iterator[Told]:
    """Made-up sentences, no two on one topic, of which there are 3,700; spread evenly over the days."""
    rng = random.Random(seed)
    for sentence in itertools.islice(sentences(seed), count):
        yield Told(sentence.text(), rng.randrange(DAYS))


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
