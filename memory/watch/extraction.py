"""Extraction of memories from a snippet of a conversation by a model: essence, emotions, weight and lesson (spec
T3)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

from pydantic import BaseModel, Field

from madeleine.memory.chat import Message
from madeleine.memory.errors import UnusableAnswer
from madeleine.memory.language_model import MeteredModel, Prompt, Rejected
from madeleine.memory.model import Emotion
from madeleine.memory.rules.storing.grounding import ungrounded_terms
from madeleine.memory.rules.storing.quoting import Statement, repeats_known_text
from madeleine.memory.text.lexicon import load_pattern
from madeleine.memory.text.sentences import split_sentences

EMOTIONS: tuple[Emotion, ...] = get_args(Emotion)
MAX_EMOTIONS_PER_MEMORY = 3
MAX_ESSENCES = 3
"""Essences of one snippet. One is the rule; six messages may hold more than one thing."""
MAX_EXTRACTED_ESSENCE_CHARS = 500
MAX_LESSON_CHARS = 300
MIN_ESSENCE_WEIGHT = 0.1
"""Below it is noise (spec T3: 0.0)."""
MAX_SHOWN_MESSAGE_CHARS = 4_000
"""Characters of one message; a longer one is shown without its middle."""
MAX_EXTRACTION_ANSWER_TOKENS = 1_000
NOTHING_USABLE_REASON = "nothing of it could be used."

_INSTRUCTIONS_TEMPLATE = (Path(__file__).parent / "extraction_prompt.txt").read_text("utf-8").rstrip()
EXTRACTION_INSTRUCTIONS = _INSTRUCTIONS_TEMPLATE.format(
    max_essences=MAX_ESSENCES,
    max_essence_chars=MAX_EXTRACTED_ESSENCE_CHARS,
    max_emotions=MAX_EMOTIONS_PER_MEMORY,
    emotions=", ".join(EMOTIONS),
)


@dataclass(frozen=True, slots=True)
class Extracted:
    """The four dimensions of a memory: `essence` is what is embedded, `emotions` up to three of the taxonomy, `weight`
    from 0 (noise) to 1 (critical), `lesson` what to do from now on, "" for none."""

    essence: str
    emotions: tuple[Emotion, ...]
    weight: float
    lesson: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """An extracted memory, the messages that it rests on, and lines of them to be kept word for word."""

    extracted: Extracted
    sources: tuple[Message, ...]
    dialogue: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractionOutcome:
    """The usable part of an answer, and the reasons why the rest is dropped, without a word of the conversation."""

    findings: tuple[Finding, ...] = ()
    dropped: tuple[str, ...] = ()


class EssenceSchema(BaseModel, strict=True, extra="forbid", frozen=True, defer_build=True):
    essence: str
    # Named in the schema, and not held to: a label too many is no reason to lose the rest.
    emotions: list[Annotated[str, Field(json_schema_extra={"enum": list(EMOTIONS)})]]
    weight: float
    lesson: str
    messages: list[int]


class ExtractionSchema(BaseModel, strict=True, extra="forbid", frozen=True, defer_build=True):
    memories: list[EssenceSchema]


@dataclass(frozen=True, slots=True)
class SnippetLine:
    """A message as the model is shown it. `text` is what is left of it without what it quotes."""

    message: Message
    text: str
    new: bool


async def extract_memories(model: MeteredModel, lines: Sequence[SnippetLine]) -> ExtractionOutcome:
    """Rejects an answer of which nothing counts; if nothing of the next one does either, the extraction is empty.
    Raises `LanguageModelUnavailable`, `UnusableAnswer`."""
    extraction = ExtractionOutcome()

    def check(answer: ExtractionSchema) -> ExtractionOutcome | Rejected:
        nonlocal extraction
        extraction, complaint = check_extraction_answer(answer, lines)
        return extraction if extraction.findings or not complaint else Rejected(NOTHING_USABLE_REASON, complaint)

    try:
        return await model.ask(extraction_prompt(lines), ExtractionSchema, check)
    except UnusableAnswer as error:
        if error.reason != NOTHING_USABLE_REASON:
            raise
        return extraction


def extraction_prompt(lines: Sequence[SnippetLine]) -> Prompt:
    shown = "\n".join(_line_as_json(number, line) for number, line in enumerate(lines, start=1))
    return Prompt(
        purpose="extract",
        system=EXTRACTION_INSTRUCTIONS,
        text=shown,
        size="small",
        max_tokens=MAX_EXTRACTION_ANSWER_TOKENS,
    )


def _line_as_json(number: int, line: SnippetLine) -> str:
    message = line.message
    who = f"{message.speaker} ({message.role})" if message.speaker else message.role
    shown = {"n": number, "who": who, "day": message.at.date().isoformat(), "text": _without_middle(line.text)}
    # No text can end or leave its line: JSON escapes line breaks and quotes, the table tags of any kind.
    return json.dumps(shown | ({"new": True} if line.new else {}), ensure_ascii=False).translate(_ESCAPES)


_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>\u2028\u2029\u0085"}


def _without_middle(text: str) -> str:
    if len(text) <= MAX_SHOWN_MESSAGE_CHARS:
        return text
    return f"{text[: MAX_SHOWN_MESSAGE_CHARS * 3 // 4]} […] {text[-MAX_SHOWN_MESSAGE_CHARS // 4 :]}"


# --- what counts of an answer -----------------------------------------------------------------------------------


def check_extraction_answer(answer: ExtractionSchema, lines: Sequence[SnippetLine]) -> tuple[ExtractionOutcome, str]:
    """The usable part of the answer, and a complaint about the rest for the model alone; "" for none."""
    findings: list[Finding] = []
    dropped: list[str] = []
    complaints: list[str] = []
    for number, essence in enumerate(answer.memories, start=1):
        fault = (
            f"memory {number} is one too many" if len(findings) == MAX_ESSENCES else _rejection_reason(essence, lines)
        )
        if not fault:
            findings.append(_finding(essence, lines))
            continue
        reason, _, quoted = fault.partition(": ")
        dropped.append(reason)
        if reason != NOISE_REJECTION_REASON:
            complaints.append(f"Memory {number}: {reason}{f' ({quoted})' if quoted else ''}.")
    return ExtractionOutcome(tuple(findings), tuple(dropped)), " ".join(complaints[:MAX_ESSENCES])


NOISE_REJECTION_REASON = "its weight says that it is noise"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_INSTRUCTION_PATTERN = load_pattern("instruction")


def _rejection_reason(essence: EssenceSchema, lines: Sequence[SnippetLine]) -> str:
    """Why it is not usable, "" if it is; the part behind a colon is for the model alone."""
    if not essence.essence.strip():
        return "its essence is empty"
    if len(essence.essence) > MAX_EXTRACTED_ESSENCE_CHARS:
        return f"its essence is longer than {MAX_EXTRACTED_ESSENCE_CHARS} characters"
    if _UNSTORABLE.search(essence.essence + essence.lesson):
        return "it holds a sign that cannot be stored"
    if not math.isfinite(essence.weight):
        return "its weight is no number"
    if essence.weight < MIN_ESSENCE_WEIGHT:
        return NOISE_REJECTION_REASON
    if unknown := sorted({number for number in essence.messages if not 1 <= number <= len(lines)}):
        return f"it rests on messages that were not shown: {', '.join(map(str, unknown[:5]))}"
    if not any(lines[number - 1].new for number in essence.messages):
        return "it rests on no new message"
    if _INSTRUCTION_PATTERN.search(essence.essence) or repeats_known_text(essence.essence, _PROMPT_STATEMENTS):
        return "it is an instruction, and tells of nothing"
    if foreign := ungrounded_terms(essence.essence, _shown_text(lines)):
        return f"it names what stands in no message: {', '.join(foreign[:5])}"
    return ""


_PROMPT_STATEMENTS = tuple(
    Statement(sentence)
    for sentence in split_sentences(EXTRACTION_INSTRUCTIONS.replace("\n", " "))
    if len(sentence) > 30
)


def _shown_text(lines: Sequence[SnippetLine]) -> str:
    """All lines: the words of a message may stand in another one."""
    return "\n".join(part for line in lines for part in (line.text, line.message.speaker, _day_in_words(line.message)))


def _day_in_words(message: Message) -> str:
    return f"{message.at:%Y-%m-%d} {message.at.day} {message.at:%B %A}"


def _finding(essence: EssenceSchema, lines: Sequence[SnippetLine]) -> Finding:
    lesson = " ".join(essence.lesson.split())
    foreign = ungrounded_terms(lesson, _shown_text(lines), orders=True)
    if len(lesson) > MAX_LESSON_CHARS or _INSTRUCTION_PATTERN.search(lesson) or foreign:
        lesson = ""
    extracted = Extracted(
        essence=" ".join(essence.essence.split()),
        emotions=tuple(dict.fromkeys(_known_emotions(essence.emotions)))[:MAX_EMOTIONS_PER_MEMORY],
        weight=min(1.0, essence.weight),
        lesson=lesson,
    )
    return Finding(extracted, tuple(lines[number - 1].message for number in sorted(set(essence.messages))))


def _known_emotions(labels: Sequence[str]) -> Iterator[Emotion]:
    by_name = {emotion: emotion for emotion in EMOTIONS}
    return (by_name[low] for label in labels if (low := label.strip().lower()) in by_name)
