"""Transcripts as Claude Code writes them: one JSON object a line, of which a few are what was said.

Standard library alone: a hook that somebody waits for reads them. What each line may hold was taken from Claude Code
2.1; lines of a kind that is not known are passed over.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from madeleine.memory.rules.storing.secrets import redact_secrets
from madeleine.memory.text.normalization import storable_text

_OF_SOMEBODY = re.compile(rb'"type"\s*:\s*"(?:user|assistant)"')
"""Most lines are of neither, and long: they are not parsed."""
_LEFT_OUT = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_NOISE = re.compile(
    r"<(?:command-|local-command-|bash-|user-memory-|task-|teammate-|ide_)"
    r"|\[Request interrupted|Caveat: The messages below"
)
_COMMAND = re.compile(r"/[\w:.-]+(?:\s|$)")
"""What Claude Code carries out itself, or turns into another prompt."""


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """A message of a conversation, with the key that it has however often it is read. `at`: ISO time, "" for now.
    `prompt_id`: of the prompt that it is, or came after, where the program gives it one."""

    role: Literal["user", "assistant"]
    text: str
    key: str
    at: str = ""
    prompt_id: str = ""


def read_transcript(lines: Iterable[bytes]) -> list[TranscriptMessage]:
    """What user and assistant said to each other, in order: without tools and thoughts, reminders, commands, summaries
    and what subagents do."""
    asked: Counter[str] = Counter()
    found: list[TranscriptMessage] = []
    for line in lines:
        for one in _spoken(line):
            if one.role == "user":
                stem = _stem(one.text)
                found.append(replace(one, key=f"{stem}{asked[stem]}"))
                asked[stem] += 1
            else:
                found.append(one)
    return found


def spoken_prompt(text: str) -> str:
    """A prompt as it will stand in the transcript; "" for one that is not said to the assistant."""
    told = said(text)
    return "" if _COMMAND.match(told) else told


def _stem(text: str) -> str:
    """The key of a prompt without its number among equal prompts. A hook sees a prompt before its line is written and
    has its `uuid`. Computed from the redacted text: the hash of the whole text could confirm a guessed secret."""
    return f"prompt-{hashlib.sha256(redact_secrets(text).text.encode()).hexdigest()[:24]}-"


def new_prompt(spoken: Sequence[TranscriptMessage], prompt: str, prompt_id: str) -> TranscriptMessage | None:
    """A prompt that is just being made, behind what was `spoken`; None if it stands there already."""
    stem = _stem(prompt)
    alike = [one for one in spoken if one.role == "user" and one.key.startswith(stem)]
    if prompt_id and any(one.prompt_id == prompt_id and one.text == prompt for one in alike):
        return None
    return TranscriptMessage("user", prompt, f"{stem}{len(alike)}", prompt_id=prompt_id)


def said(text: str) -> str:
    """Without what the program adds to it; "" where nothing is left."""
    told = _REMINDER.sub("", storable_text(text)).strip()
    return "" if _NOISE.match(told) else told


def _spoken(line: bytes) -> Iterator[TranscriptMessage]:
    if not _OF_SOMEBODY.search(line):
        return
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):  # cut off: it is being written
        return
    message = entry.get("message") if isinstance(entry, dict) else None
    if not isinstance(message, dict) or any(entry.get(name) for name in _LEFT_OUT):
        return
    role, key, at = entry.get("type"), entry.get("uuid"), entry.get("timestamp")
    if not isinstance(key, str) or role not in ("user", "assistant") or message.get("model") == "<synthetic>":
        return
    if entry.get("promptSource") == "system":
        return
    text = said(_text(message.get("content")))
    if text:
        prompt = entry.get("promptId")
        yield TranscriptMessage(
            role, text, key, at if isinstance(at, str) else "", prompt if isinstance(prompt, str) else ""
        )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text")
    return "\n\n".join(text for text in texts if isinstance(text, str))
