"""Extraction of memories from a snippet of a conversation by a model: essence, emotions, weight and lesson (spec
T3)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, model_validator

from madeleine.memory.chat import ConversationMessage
from madeleine.memory.errors import UnusableAnswer
from madeleine.memory.language_model import MeteredModel, Prompt, RejectedModelAnswer
from madeleine.memory.model import Emotion
from madeleine.memory.rules.feelings import MAX_EMOTION_LABELS
from madeleine.memory.rules.searching import extract_search_tags_from_message
from madeleine.memory.rules.storing.grounding import ungrounded_terms
from madeleine.memory.rules.storing.quoting import StatementForRepetitionCheck, repeats_known_text
from madeleine.memory.text.lexicon import all_words_of_lexicon_lists, load_language_neutral_pattern
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.sentences import split_sentences

EXTRACTION_COST_PURPOSE = "extract"
"""In the cost record."""
EXTRACTABLE_EMOTION_LABELS: tuple[Emotion, ...] = get_args(Emotion)
MAX_MEMORIES_EXTRACTED_PER_SNIPPET = 3
"""Essences of one snippet. One is the rule; six messages may hold more than one thing."""
MAX_EXTRACTED_ESSENCE_CHARS = 500
MAX_EXTRACTED_LESSON_CHARS = 300
MAX_THEMES_PER_EXTRACTED_MEMORY = 3
MAX_EXTRACTED_THEME_CHARS = 40
DEFAULT_EXTRACTED_MEMORY_IMPORTANCE = 0.5
"""Of a memory to which the model gives none."""
MIN_EXTRACTED_MEMORY_IMPORTANCE = 0.1
"""Below it is noise (spec T3: 0.0)."""
MAX_MESSAGE_CHARS_FOR_EXTRACTION = 4_000
"""Characters of one message; a longer one is shown without its middle."""
MAX_EXTRACTION_ANSWER_TOKENS = 1_000
NOTHING_USABLE_EXTRACTED_REASON = "nothing of it could be used."

_EXTRACTION_INSTRUCTIONS_TEMPLATE = (Path(__file__).parent / "extraction_prompt.txt").read_text("utf-8").rstrip()
MEMORY_EXTRACTION_INSTRUCTIONS = _EXTRACTION_INSTRUCTIONS_TEMPLATE.format(
    max_essences=MAX_MEMORIES_EXTRACTED_PER_SNIPPET,
    max_essence_chars=MAX_EXTRACTED_ESSENCE_CHARS,
    max_emotions=MAX_EMOTION_LABELS,
    emotions=", ".join(EXTRACTABLE_EMOTION_LABELS),
    max_themes=MAX_THEMES_PER_EXTRACTED_MEMORY,
)


@dataclass(frozen=True, slots=True)
class ExtractedMemory:
    """The four dimensions of a memory: `essence` is what is embedded, `emotions` up to three of the taxonomy, `weight`
    from 0 (noise) to 1 (critical), `lesson` what to do from now on, "" for none. `themes`: what it is about."""

    essence: str
    emotions: tuple[Emotion, ...]
    weight: float
    lesson: str = ""
    themes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractedMemoryWithMessages:
    """An extracted memory, the messages that it rests on, and lines of them to be kept word for word."""

    extracted: ExtractedMemory
    sources: tuple[ConversationMessage, ...]
    dialogue: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractionOutcome:
    """The usable part of an answer, and the reasons why the rest is dropped, without a word of the conversation."""

    memories: tuple[ExtractedMemoryWithMessages, ...] = ()
    dropped: tuple[str, ...] = ()


class ExtractedMemorySchema(BaseModel, strict=True, extra="forbid", frozen=True, defer_build=True):
    """What a model is told to write. Small models leave out what is empty, write numbers as texts and add keys of their
    own: all that can be understood is read."""

    essence: str
    # Named in the schema, and not held to: a label too many is no reason to lose the rest.
    emotions: list[Annotated[str, Field(json_schema_extra={"enum": list(EXTRACTABLE_EMOTION_LABELS)})]]
    weight: float
    lesson: str
    themes: list[str]
    messages: list[int]

    @model_validator(mode="before")
    @classmethod
    def _parse_fields_leniently(cls, answer: Any) -> Any:
        return _leniently_parsed_memory_fields(answer) if _has_essence(answer) else answer


class MemoryExtractionAnswerSchema(BaseModel, strict=True, extra="forbid", frozen=True, defer_build=True):
    """Also read: a bare list of memories, one memory alone, and an object around them with a key of its own."""

    memories: list[ExtractedMemorySchema]

    @model_validator(mode="before")
    @classmethod
    def _answer_as_list_of_memories(cls, answer: Any) -> Any:
        while isinstance(answer, Mapping) and len(answer) == 1 and not _has_essence(answer):
            [answer] = answer.values()
        answer = answer.get("memories", answer) if isinstance(answer, Mapping) else answer
        memories = [answer] if _has_essence(answer) else answer
        if not isinstance(memories, list):
            return answer
        return {"memories": [memory for memory in memories if _has_essence(memory)] or memories}


def _has_essence(answer: Any) -> bool:
    """A memory whose essence is text: what it says cannot be guessed, so anything else is no answer."""
    if isinstance(answer, ExtractedMemorySchema):
        return True
    return isinstance(answer, Mapping) and any(isinstance(text, str) for text in _as_list(answer.get("essence")))


def _leniently_parsed_memory_fields(answer: Mapping[str, Any]) -> dict[str, Any]:
    numbers = (_number_or_percentage_or_none(value) for value in _as_list(answer.get("messages")))
    return {
        "essence": _join_texts(answer["essence"]),
        "emotions": _split_into_texts(answer.get("emotions")),
        "weight": DEFAULT_EXTRACTED_MEMORY_IMPORTANCE
        if (weight := _number_or_percentage_or_none(answer.get("weight"))) is None
        else weight,
        "lesson": _join_texts(answer.get("lesson")),
        "themes": _split_into_texts(answer.get("themes")),
        "messages": [int(number) for number in numbers if number is not None and math.isfinite(number)],
    }


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _split_into_texts(value: Any) -> list[str]:
    return [part for text in _as_list(value) if isinstance(text, str) for part in re.split(r"[,;、،]", text)]


def _join_texts(value: Any) -> str:
    return " ".join(text for text in _as_list(value) if isinstance(text, str))


def _number_or_percentage_or_none(value: Any) -> float | None:
    """`0.7`, "0.7", "0,7" and "70%" are one number."""
    if isinstance(value, int | float):
        return float(value)
    match = _NUMBER_OR_PERCENTAGE_PATTERN.match(value) if isinstance(value, str) else None
    return float(match[1].replace(",", ".")) / (100 if match[2] else 1) if match else None


_NUMBER_OR_PERCENTAGE_PATTERN = re.compile(r"\s*(-?\d+(?:[.,]\d+)?)\s*(%?)\s*$")


@dataclass(frozen=True, slots=True)
class SnippetMessage:
    """A message as the model is shown it. `text` is what is left of it without what it quotes."""

    message: ConversationMessage
    text: str
    new: bool


async def extract_memories(model: MeteredModel, lines: Sequence[SnippetMessage]) -> ExtractionOutcome:
    """Rejects an answer of which nothing counts; if nothing of the next one does either, the extraction is empty.
    Raises `LanguageModelUnavailable`, `UnusableAnswer`."""
    extraction = ExtractionOutcome()

    def check(answer: MemoryExtractionAnswerSchema) -> ExtractionOutcome | RejectedModelAnswer:
        nonlocal extraction
        extraction, complaint = extraction_outcome_and_complaint(answer, lines)
        return (
            extraction
            if extraction.memories or not complaint
            else RejectedModelAnswer(NOTHING_USABLE_EXTRACTED_REASON, complaint)
        )

    try:
        return await model.answer_prompt(memory_extraction_prompt(lines), MemoryExtractionAnswerSchema, check)
    except UnusableAnswer as error:
        if error.reason != NOTHING_USABLE_EXTRACTED_REASON:
            raise
        return extraction


def memory_extraction_prompt(lines: Sequence[SnippetMessage]) -> Prompt:
    shown = "\n".join(_snippet_message_as_json(number, line) for number, line in enumerate(lines, start=1))
    return Prompt(
        purpose=EXTRACTION_COST_PURPOSE,
        system=MEMORY_EXTRACTION_INSTRUCTIONS,
        text=shown,
        size="small",
        max_tokens=MAX_EXTRACTION_ANSWER_TOKENS,
    )


def _snippet_message_as_json(number: int, line: SnippetMessage) -> str:
    message = line.message
    who = f"{message.speaker} ({message.role})" if message.speaker else message.role
    shown = {"n": number, "who": who, "day": message.at.date().isoformat(), "text": _without_middle(line.text)}
    # No text can end or leave its line: JSON escapes line breaks and quotes, the table tags of any kind.
    return json.dumps(shown | ({"new": True} if line.new else {}), ensure_ascii=False).translate(
        _JSON_ESCAPE_BY_CHAR_CODE
    )


_JSON_ESCAPE_BY_CHAR_CODE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>\u2028\u2029\u0085"}


def _without_middle(text: str) -> str:
    if len(text) <= MAX_MESSAGE_CHARS_FOR_EXTRACTION:
        return text
    return f"{text[: MAX_MESSAGE_CHARS_FOR_EXTRACTION * 3 // 4]} […] {text[-MAX_MESSAGE_CHARS_FOR_EXTRACTION // 4 :]}"


# --- what counts of an answer -----------------------------------------------------------------------------------


def extraction_outcome_and_complaint(
    answer: MemoryExtractionAnswerSchema, lines: Sequence[SnippetMessage]
) -> tuple[ExtractionOutcome, str]:
    """The usable part of the answer, and a complaint about the rest for the model alone; "" for none."""
    findings: list[ExtractedMemoryWithMessages] = []
    dropped: list[str] = []
    complaints: list[str] = []
    for number, essence in enumerate(answer.memories, start=1):
        fault = (
            f"memory {number} is one too many"
            if len(findings) == MAX_MEMORIES_EXTRACTED_PER_SNIPPET
            else _rejection_reason(essence, lines)
        )
        if not fault:
            findings.append(_usable_extracted_memory_with_messages(essence, lines))
            continue
        reason, _, quoted = fault.partition(": ")
        dropped.append(reason)
        if reason != NOISE_REJECTION_REASON:
            complaints.append(f"Memory {number}: {reason}{f' ({quoted})' if quoted else ''}.")
    return ExtractionOutcome(tuple(findings), tuple(dropped)), " ".join(complaints[:MAX_MEMORIES_EXTRACTED_PER_SNIPPET])


NOISE_REJECTION_REASON = "its weight says that it is noise"
_UNSTORABLE_CHAR_PATTERN = re.compile("[\x00\ud800-\udfff]")
_INSTRUCTION_PATTERN = load_language_neutral_pattern("instruction")


def _rejection_reason(essence: ExtractedMemorySchema, lines: Sequence[SnippetMessage]) -> str:
    """Why it is not usable, "" if it is; the part behind a colon is for the model alone."""
    if not essence.essence.strip():
        return "its essence is empty"
    if len(essence.essence) > MAX_EXTRACTED_ESSENCE_CHARS:
        return f"its essence is longer than {MAX_EXTRACTED_ESSENCE_CHARS} characters"
    if _UNSTORABLE_CHAR_PATTERN.search(essence.essence + essence.lesson):
        return "it holds a sign that cannot be stored"
    if not math.isfinite(essence.weight):
        return "its weight is no number"
    if essence.weight < MIN_EXTRACTED_MEMORY_IMPORTANCE:
        return NOISE_REJECTION_REASON
    numbers = _source_message_numbers(essence, lines)
    if unknown := [number for number in numbers if not 1 <= number <= len(lines)]:
        return f"it rests on messages that were not shown: {', '.join(map(str, unknown[:5]))}"
    if not any(lines[number - 1].new for number in numbers):
        return "it rests on no new message"
    if _INSTRUCTION_PATTERN.search(essence.essence) or repeats_known_text(
        essence.essence, _EXTRACTION_PROMPT_STATEMENTS
    ):
        return "it is an instruction, and tells of nothing"
    if foreign := ungrounded_terms(essence.essence, _all_text_shown_to_model(lines), days=_days_of_messages(lines)):
        return f"it names what stands in no message: {', '.join(foreign[:5])}"
    return ""


_EXTRACTION_PROMPT_STATEMENTS = tuple(
    StatementForRepetitionCheck(sentence)
    for sentence in split_sentences(MEMORY_EXTRACTION_INSTRUCTIONS.replace("\n", " "))
    if len(sentence) > 30
)


def _all_text_shown_to_model(lines: Sequence[SnippetMessage]) -> str:
    """All lines: the words of a message may stand in another one."""
    return "\n".join(
        part
        for line in lines
        for part in (line.text, line.message.speaker, _date_of_message_in_iso_and_words(line.message))
    )


def _date_of_message_in_iso_and_words(message: ConversationMessage) -> str:
    return f"{message.at:%Y-%m-%d} {message.at.day} {message.at:%B %A}"


def _days_of_messages(lines: Sequence[SnippetMessage]) -> frozenset[date]:
    return frozenset(line.message.at.date() for line in lines)


def _source_message_numbers(essence: ExtractedMemorySchema, lines: Sequence[SnippetMessage]) -> list[int]:
    """The numbers of the messages that it rests on: of all new ones where it names none."""
    return sorted(set(essence.messages)) or [number for number, line in enumerate(lines, start=1) if line.new]


def _usable_extracted_memory_with_messages(
    essence: ExtractedMemorySchema, lines: Sequence[SnippetMessage]
) -> ExtractedMemoryWithMessages:
    lesson = " ".join(essence.lesson.split())
    foreign = ungrounded_terms(lesson, _all_text_shown_to_model(lines), days=_days_of_messages(lines), orders=True)
    if len(lesson) > MAX_EXTRACTED_LESSON_CHARS or _INSTRUCTION_PATTERN.search(lesson) or foreign:
        lesson = ""
    extracted = ExtractedMemory(
        essence=" ".join(essence.essence.split()),
        emotions=tuple(dict.fromkeys(_known_emotions_of_labels(essence.emotions)))[:MAX_EMOTION_LABELS],
        weight=min(1.0, essence.weight),
        lesson=lesson,
        themes=_storable_themes(essence.themes) or themes_of_text(essence.essence),
    )
    return ExtractedMemoryWithMessages(
        extracted, tuple(lines[number - 1].message for number in _source_message_numbers(essence, lines))
    )


def _storable_themes(themes: Sequence[str]) -> tuple[str, ...]:
    stripped = (" ".join(theme.strip(" #.\"'").split()) for theme in themes)
    usable = (
        theme
        for theme in stripped
        if 0 < len(theme) <= MAX_EXTRACTED_THEME_CHARS and not _UNSTORABLE_CHAR_PATTERN.search(theme)
    )
    return tuple({theme.casefold(): theme for theme in usable}.values())[:MAX_THEMES_PER_EXTRACTED_MEMORY]


def themes_of_text(text: str) -> tuple[str, ...]:
    """Where nobody has named any: the names in it; in scripts without capitals its most specific words (spec H1)."""
    reading = AnalysedText(text)
    calendar = all_words_of_lexicon_lists(reading.lexicons, "days", "months")
    names = (word.text for word in reading.possible_names if not word.opens and word.stem not in calendar)
    words = (
        extract_search_tags_from_message(text) if all(word.is_in_caseless_script for word in reading.words) else names
    )
    return _storable_themes(tuple(dict.fromkeys(words)))


def _known_emotions_of_labels(labels: Sequence[str]) -> Iterator[Emotion]:
    by_name = {emotion: emotion for emotion in EXTRACTABLE_EMOTION_LABELS}
    return (by_name[low] for label in labels if (low := label.strip().lower()) in by_name)
