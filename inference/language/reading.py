"""From the text of an answer to its shape. Models that are not held to JSON wrap it in words, fences and thoughts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from madeleine.memory.language import Answer

MOST_FAULTS = 8
"""That a model is told of at once."""
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.S)
_FENCED = re.compile(r"```[a-z]*\s*\n(.*?)```", re.S)


@dataclass(frozen=True, slots=True)
class Misshapen:
    """`complaint` is for the model alone, and may quote it; `reason` is for people and logs, and does not."""

    reason: str
    complaint: str


def read(text: str, shape: type[Answer]) -> Answer | Misshapen:
    """The first part of the text that is JSON, checked."""
    for part in _parts(text):
        try:
            return shape.model_validate_json(part)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False)
        if faults[0]["type"] != "json_invalid":
            told = "; ".join(f"{_place(fault['loc'])}: {fault['msg']}" for fault in faults[:MOST_FAULTS])
            kinds = ", ".join(sorted({fault["type"] for fault in faults}))
            return Misshapen(
                f"it has not the shape that was asked for ({kinds}).", f"it does not fit the schema: {told}"
            )
    return Misshapen("it is not JSON.", "it is not JSON")


def in_words(shape: type[BaseModel]) -> str:
    """For a model that takes no schema otherwise."""
    schema = json.dumps(shape.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON object that fits this JSON Schema, and with nothing else:\n{schema}"


def again(complaint: str) -> str:
    """What the model is told after an answer that cannot be used."""
    return f"This answer cannot be used: {complaint}. Answer once more, with the whole JSON object and nothing else."


def _parts(text: str) -> Iterator[str]:
    said = _THOUGHTS.sub("", text).strip()
    yield said
    yield from _FENCED.findall(said)
    start, end = said.find("{"), said.rfind("}")
    if -1 < start < end:
        yield said[start : end + 1]


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "the whole"
