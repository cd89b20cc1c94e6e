"""Transcripts as Claude Code writes them: one JSON object a line, of which a few are what was said.

Standard library alone: a hook that somebody waits for reads them. What each line may hold was taken from Claude Code
2.1; lines of a kind that is not known are passed over.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from madeleine.memory.rules.storing.secrets import redact_secrets
from madeleine.memory.text.lexicon import load_language_neutral_pattern
from madeleine.memory.text.normalization import storable_text

_USER_OR_ASSISTANT_TYPE_PATTERN = re.compile(rb'"type"\s*:\s*"(?:user|assistant)"')
"""Most lines are of another type, and long: they are not parsed."""
_FLAGS_OF_SKIPPED_LINES = (
    "isMeta",
    "isSidechain",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "isApiErrorMessage",
)
_COMPACTION_SUMMARY_FLAG_PATTERN = re.compile(rb'"isCompactSummary"\s*:\s*true')
_SYSTEM_REMINDER_PATTERN = re.compile(r"<system-reminder>(?:[^<]|<(?!/?system-reminder>))*+</system-reminder>")
_TEXT_INSERTED_BY_CLIENT_PATTERN = load_language_neutral_pattern("program_text")
_SLASH_COMMAND_PATTERN = re.compile(r"/[\w:.-]+(?:\s|$)")
"""Commands that Claude Code carries out itself, or turns into another prompt."""


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """A message of a conversation, with the key that it has however often it is read. `at`: ISO time, "" for now.
    `prompt_id`: of the prompt that it is, or came after, where the program gives it one. `directory`: in which the
    program worked."""

    role: Literal["user", "assistant"]
    text: str
    key: str
    at: str = ""
    prompt_id: str = ""
    session_id: str = ""
    directory: str = ""


class TranscriptReader:
    """Reads the lines of one transcript, in order."""

    def __init__(self) -> None:
        self._prompt_counts: Counter[str] = Counter()

    def parse_message(self, line: bytes) -> TranscriptMessage | None:
        """The words of user or assistant; None for tools and thoughts, reminders, commands, summaries and subagents."""
        message = _parse_transcript_line(line)
        if message is None or message.role == "assistant":
            return message
        prefix = prompt_key_prefix_of_text(message.text)
        key = f"{prefix}{self._prompt_counts[prefix]}"
        self._prompt_counts[prefix] += 1
        return replace(message, key=key)


def messages_from_transcript_lines(lines: Iterable[bytes]) -> list[TranscriptMessage]:
    reader = TranscriptReader()
    return [message for line in lines if (message := reader.parse_message(line))]


def is_compaction_summary_line(line: bytes) -> bool:
    """Whether a line is what the program made of all that was said before: the model does not see that any more."""
    return bool(_COMPACTION_SUMMARY_FLAG_PATTERN.search(line))


def prompt_as_in_transcript(text: str) -> str:
    """A prompt as it will stand in the transcript; "" for one that is not said to the assistant."""
    spoken = text_without_program_additions(text)
    return "" if _SLASH_COMMAND_PATTERN.match(spoken) else spoken


def prompt_key_prefix_of_text(text: str) -> str:
    """The key of a prompt without its number among equal prompts. A hook sees a prompt before its line is written and
    has its `uuid`. Computed from the redacted text: the hash of the whole text could confirm a guessed secret."""
    return f"prompt-{hashlib.sha256(redact_secrets(text).text.encode()).hexdigest()[:24]}-"


def prompt_message_missing_from_transcript(
    messages: Sequence[TranscriptMessage], prompt: str, prompt_id: str
) -> TranscriptMessage | None:
    """The prompt that is being made, as the message behind `messages`; None if it is one of them already."""
    prefix = prompt_key_prefix_of_text(prompt)
    equal = [message for message in messages if message.role == "user" and message.key.startswith(prefix)]
    if prompt_id and any(message.prompt_id == prompt_id and message.text == prompt for message in equal):
        return None
    return TranscriptMessage("user", prompt, f"{prefix}{len(equal)}", prompt_id=prompt_id)


def text_without_program_additions(text: str) -> str:
    """The text without additions of the program; "" if nothing is left."""
    spoken = _SYSTEM_REMINDER_PATTERN.sub("", storable_text(text)).strip()
    return "" if _TEXT_INSERTED_BY_CLIENT_PATTERN.match(spoken) else spoken


def _parse_transcript_line(line: bytes) -> TranscriptMessage | None:
    """The message of a line; None for a line of another kind, and for one that is still being written."""
    if not _USER_OR_ASSISTANT_TYPE_PATTERN.search(line):
        return None
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    message = entry.get("message") if isinstance(entry, dict) else None
    if not isinstance(message, dict) or any(entry.get(flag) for flag in _FLAGS_OF_SKIPPED_LINES):
        return None
    role, key = entry.get("type"), entry.get("uuid")
    about = [entry.get(name) for name in ("timestamp", "promptId", "sessionId", "cwd")]
    by_program = message.get("model") == "<synthetic>" or entry.get("promptSource") == "system"
    text = text_without_program_additions(_text_of_content_blocks(message.get("content")))
    if by_program or not text or not isinstance(key, str) or role not in ("user", "assistant"):
        return None
    return TranscriptMessage(role, text, key, *(value if isinstance(value, str) else "" for value in about))


def _text_of_content_blocks(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text")
    return "\n\n".join(text for text in texts if isinstance(text, str))
