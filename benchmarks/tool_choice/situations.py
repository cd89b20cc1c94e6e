"""Situations in an agent's day, in twelve languages, the calls that a good agent makes, and how answers are graded.

Written by hand, without regard to how a model answers them (`situations.jsonl`): 92 where a tool is to be called, 20
where none is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SITUATIONS_FILE = Path(__file__).with_name("situations.jsonl")
ANY_VALUE = "*"
PATTERN_MARK = "~"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """A call. In an expected one a text that begins with `~` is a pattern that the argument holds, in any case; `*` is
    any value; a list holds at least these items. Arguments that are not named may have any value."""

    tool: str
    arguments: Mapping[str, Any]

    def is_met_by(self, answer: ToolChoice) -> bool:
        return self.tool == answer.tool and all(
            name in answer.arguments and _fits(expected, answer.arguments[name])
            for name, expected in self.arguments.items()
        )


def _fits(expected: Any, value: Any) -> bool:
    if expected == ANY_VALUE:
        return True
    if isinstance(expected, list):
        items = value if isinstance(value, list) else [value]
        return all(any(_fits(part, item) for item in items) for part in expected) and (expected != [] or items == [])
    if isinstance(expected, str) and expected.startswith(PATTERN_MARK):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return re.search(expected.removeprefix(PATTERN_MARK), text, re.IGNORECASE) is not None
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    return bool(expected == value)


@dataclass(frozen=True, slots=True)
class Situation:
    """`expected`: calls each of which is right; none where no tool is to be called."""

    id: str
    language: str
    text: str
    expected: tuple[ToolChoice, ...]

    def is_met_by(self, answer: ToolChoice | None) -> bool:
        if answer is None or not self.expected:
            return answer is None and not self.expected
        return any(choice.is_met_by(answer) for choice in self.expected)


def read_situations() -> list[Situation]:
    lines = SITUATIONS_FILE.read_text(encoding="utf-8").splitlines()
    return [
        Situation(
            raw["id"],
            raw["language"],
            raw["situation"],
            tuple(ToolChoice(choice["tool"], choice["arguments"]) for choice in raw["expect"]),
        )
        for raw in map(json.loads, lines)
    ]


def read_answers(raw: Mapping[str, Any]) -> dict[str, ToolChoice | None]:
    """Answers by the id of their situation: `{"tool": …, "arguments": {…}}`; a tool that is null, "" or "none" is no
    call."""
    return {
        id_: ToolChoice(choice["tool"], choice.get("arguments") or {})
        if choice and choice.get("tool") not in (None, "", "none")
        else None
        for id_, choice in raw.items()
    }


@dataclass(frozen=True, slots=True)
class Grades:
    """`wrong`: what was answered in place of what was expected."""

    asked: int
    wrong: Mapping[str, tuple[Situation, ToolChoice | None]]

    @property
    def share_right(self) -> float:
        return 1 - len(self.wrong) / self.asked


def grade(situations: Sequence[Situation], answers: Mapping[str, ToolChoice | None]) -> Grades:
    """A situation without an answer is wrong if a call was expected."""
    wrong = {
        situation.id: (situation, answers.get(situation.id))
        for situation in situations
        if not situation.is_met_by(answers.get(situation.id))
    }
    return Grades(len(situations), wrong)
