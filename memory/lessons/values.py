"""What a failure was, and what is learnt from it (spec O11)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Memory
from madeleine.memory.text.content_words import content_words

REPORT_FAILURE_TOOL_NAME = "report_failure"
"""Of a lesson's provenance: what is procedural and comes from there is no standing preference."""
_CONVERSATION_LINE_PATTERN = re.compile(
    r"^\W{0,3}(?:user|human|assistant|ai|system|tool)\W{0,3}:", re.IGNORECASE | re.MULTILINE
)
"""A line of a conversation, by the protocol's names of the speakers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTaskFailureReport:
    """What a proposer is shown: no message of the conversation (spec O11). `tool_calls`: names of the tools, in order.
    `turns`: of the conversation."""

    task: str
    error: str
    tool_calls: tuple[str, ...] = ()
    retries: int = 0
    turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Three tiers: `discovery`, a summary that is ranked (some 100 tokens); `condition`, `action` and `rationale`, when
    to do what and why; `steps`, how. `confidence` of the proposer, in [0, 1]."""

    discovery: str
    condition: str
    action: str
    rationale: str = ""
    steps: tuple[str, ...] = ()
    confidence: float = 0.5

    @property
    def embedded_text(self) -> str:
        """What is embedded, so that it is found when the condition comes up again."""
        return f"{self.discovery.rstrip('.')}. {self.condition}"

    @property
    def advice(self) -> str:
        """What is shown wherever its memory is (ruling 22)."""
        return f"{self.action} ({self.rationale})" if self.rationale else self.action


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonWithOutcomeCounts:
    """A lesson and its memory. `helped`, `failed`: how often following it did."""

    memory: Memory
    lesson: Lesson
    helped: int = 0
    failed: int = 0

    @property
    def trust(self) -> float:
        """In (0, 1]: 1 until it fails; the share of the times that it helped, with two good ones in advance."""
        return (self.helped + 2) / (self.helped + self.failed + 2)


def require_no_conversation_in_failure(failure: AgentTaskFailureReport) -> None:
    """Raises `InvalidInput` for lines that somebody says: a lesson is drawn from what happened, not from what was
    said (spec O11)."""
    for name, text in (("task", failure.task), ("error", failure.error)):
        if _CONVERSATION_LINE_PATTERN.search(text):
            raise InvalidInput(
                f"{name}: holds lines of a conversation, which are not kept with a failure. Nothing was done: tell in "
                "your own words what the task was and which error came."
            )


def reason_against_lesson(lesson: Lesson, failure: AgentTaskFailureReport) -> str:
    """Why the lesson cannot be kept, as a sentence; "" if it can."""
    told = {*content_words(failure.task), *content_words(failure.error), *content_words(" ".join(failure.tool_calls))}
    if told.isdisjoint(content_words(lesson.embedded_text)):
        return "Its discovery and condition have no word of the task or the error: say when it applies in these words."
    if lesson.action.casefold() in (lesson.condition.casefold(), lesson.discovery.casefold()):
        return "Its action says no more than its condition: say what to do."
    if _CONVERSATION_LINE_PATTERN.search("\n".join((lesson.discovery, lesson.condition, lesson.action, *lesson.steps))):
        return "It quotes a conversation: say what to do in your own words."
    return ""


def is_preference(memory: Memory) -> bool:
    """Whether it says how to behave always (ruling 15): a lesson is for when its condition comes up."""
    return memory.category == "procedural" and memory.provenance.tool != REPORT_FAILURE_TOOL_NAME
