"""Snippets of conversations that the memory thread reads, and their words that count (spec T2); recording without a
model (spec H6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from madeleine.memory.chat import ConversationMessage, SessionWithUnreadMessages
from madeleine.memory.rules.storing.quoting import statements_of_memory, without_quotes_from_memory
from madeleine.memory.rules.storing.worth_remembering import reason_to_remember_agreement, should_remember
from madeleine.memory.watch.extraction import (
    ExtractedMemory,
    ExtractedMemoryWithMessages,
    SnippetMessage,
    themes_of_text,
)
from madeleine.memory.watch.remember import SimilarMemory

MAX_SNIPPET_MESSAGES = 6
"""Messages that are read together (spec T2)."""


@dataclass(frozen=True, slots=True)
class ConversationSnippet:
    """`new_messages`: unread, at positions in [`start`, `end`). `shown`: the last six up to `end`, those included.
    `more_follows`: some come after `end` that have been answered."""

    start: int
    end: int
    new_messages: tuple[ConversationMessage, ...]
    shown: tuple[ConversationMessage, ...]
    more_follows: bool


def next_conversation_snippet(
    session: SessionWithUnreadMessages,
    earlier: Sequence[ConversationMessage],
    unread: Sequence[ConversationMessage],
    settled_before: datetime,
) -> ConversationSnippet | None:
    """The next up to six of the unread messages, with those before them; None while an answer is awaited, which is
    until `settled_before`. Messages of programs do not count among the six (spec T2): neither list holds any.

    Longer stretches are read from the oldest on, each message in exactly one snippet as a new one. A snippet ends with
    an answer if it can, so that a question is not parted from it. `unread`: not empty; a seventh one tells that there
    are more.
    """
    new = list(unread[:MAX_SNIPPET_MESSAGES])
    more_follows = len(unread) > MAX_SNIPPET_MESSAGES
    if more_follows:
        last_answer = max((at for at, message in enumerate(new) if message.role == "assistant"), default=len(new) - 1)
        new = new[: last_answer + 1]
    else:
        new = _settled_messages(new, settled_before)
        if not new or (len(new) < len(unread) and new[-1].position < session.put_off):
            return None
    shown = (*earlier, *new)[-MAX_SNIPPET_MESSAGES:]
    return ConversationSnippet(session.watched, new[-1].position + 1, tuple(new), shown, more_follows)


def _settled_messages(new: Sequence[ConversationMessage], before: datetime) -> list[ConversationMessage]:
    """The messages without the last ones that may still be answered: all after the last answer, unless they are old."""
    if not new or new[-1].role == "assistant" or new[-1].stored_at <= before:
        return list(new)
    last_answer = max((at for at, message in enumerate(new) if message.role == "assistant"), default=-1)
    return list(new[: last_answer + 1])


def has_signs_of_something_to_remember(lines: Sequence[SnippetMessage]) -> bool:
    """Whether the words of the new lines tell that they hold something to remember. A no only puts them off: other
    languages and other words than the lexicons' tell as much."""
    new = [line for line in lines if line.new]
    asked = "\n".join(line.text for line in new if line.message.role == "user")
    answered = "\n".join(line.text for line in new if line.message.role == "assistant")
    if should_remember(asked, answered)[0]:
        return True
    return any(
        answer.new and answer.message.role == "user" and question.message.role == "assistant"
        and reason_to_remember_agreement(question.text, answer.text)
        for question, answer in pairwise(lines)
    )  # fmt: skip


def messages_without_quotes_from_memories(
    lines: Sequence[SnippetMessage], similar: Sequence[Sequence[SimilarMemory]], speakers: Sequence[str]
) -> list[SnippetMessage]:
    """`lines` without what they quote from the memories that are similar to each."""
    statements = {each.memory.id: statements_of_memory(each.memory) for memories in similar for each in memories}
    return [
        replace(
            line,
            text=without_quotes_from_memory(
                line.text,
                [statement for each in memories for statement in statements[each.memory.id]],
                by_assistant=line.message.role == "assistant",
                speakers=speakers,
            ),
        )
        for line, memories in zip(lines, similar, strict=True)
    ]


EXCHANGE_MEMORY_IMPORTANCE = 0.4
"""Below the 0.5 of what somebody stores on purpose: nobody has judged it."""
MAX_EXCHANGE_ESSENCE_CHARS = 2_000
MAX_EXCHANGE_ANSWER_CHARS = 500


def memories_from_exchanges(lines: Sequence[SnippetMessage]) -> list[ExtractedMemoryWithMessages]:
    """Each exchange of the new messages that is worth it: the person's words are the memory, the answer its
    dialogue."""
    findings: list[ExtractedMemoryWithMessages] = []
    for exchange in _split_into_exchanges([line for line in lines if line.new]):
        asked = "\n".join(line.text for line in exchange if line.message.role == "user")
        answered = "\n".join(line.text for line in exchange if line.message.role == "assistant")
        if should_remember(asked, answered)[0] and (text := " ".join((asked or answered).split())):
            essence = _shorten_with_ellipsis(text, MAX_EXCHANGE_ESSENCE_CHARS)
            answer = " ".join(answered.split()) if asked else ""
            dialogue = (_shorten_with_ellipsis(answer, MAX_EXCHANGE_ANSWER_CHARS),) if answer else ()
            themes = themes_of_text(essence)
            extracted = ExtractedMemory(essence=essence, emotions=(), weight=EXCHANGE_MEMORY_IMPORTANCE, themes=themes)
            findings.append(ExtractedMemoryWithMessages(extracted, tuple(line.message for line in exchange), dialogue))
    return findings


def _split_into_exchanges(lines: Sequence[SnippetMessage]) -> list[list[SnippetMessage]]:
    """Split lines into exchanges: each begins with the person's words and ends with the answer."""
    exchanges: list[list[SnippetMessage]] = []
    before = ""
    for line in lines:
        if not exchanges or (line.message.role == "user" and before != "user"):
            exchanges.append([])
        exchanges[-1].append(line)
        before = line.message.role
    return exchanges


def _shorten_with_ellipsis(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 2].rstrip()} …"
