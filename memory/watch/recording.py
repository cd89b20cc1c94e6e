"""Silent recording (spec H6): an exchange that is worth it becomes a memory as it was said, without any model."""

from __future__ import annotations

from collections.abc import Sequence

from madeleine.memory.rules.storing.worth import should_remember
from madeleine.memory.watch.extraction import Extracted, Finding, Line

RECORDED_WEIGHT = 0.4
"""Below the 0.5 of what somebody stores on purpose: nobody has judged it."""
MAX_CHARS = 2_000
MAX_ANSWER_CHARS = 500


def recorded(lines: Sequence[Line]) -> list[Finding]:
    """Each exchange of the new messages that is worth it: the person's words are the memory, the answer its
    dialogue."""
    found: list[Finding] = []
    for exchange in _exchanges([line for line in lines if line.new]):
        asked = "\n".join(line.text for line in exchange if line.message.role == "user")
        answered = "\n".join(line.text for line in exchange if line.message.role == "assistant")
        if should_remember(asked, answered)[0] and (said := asked or answered):
            told = Extracted(essence=_cut(" ".join(said.split()), MAX_CHARS), emotions=(), weight=RECORDED_WEIGHT)
            answer = " ".join(answered.split()) if asked else ""
            dialogue = (_cut(answer, MAX_ANSWER_CHARS),) if answer else ()
            found.append(Finding(told, tuple(line.message for line in exchange), dialogue))
    return found


def _exchanges(lines: Sequence[Line]) -> list[list[Line]]:
    """What a person says begins one, and what is answered belongs to it."""
    found: list[list[Line]] = []
    for line in lines:
        begins = line.message.role == "user" and not (found and found[-1][-1].message.role == "user")
        if begins or not found:
            found.append([])
        found[-1].append(line)
    return found


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 2].rstrip()} …"
