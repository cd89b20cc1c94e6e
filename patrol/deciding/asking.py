"""Asking a language model, and once more if what it answers breaks a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from madeleine.memory.errors import UnusableAnswer
from madeleine.memory.language import Answer, Prompt, Spent
from madeleine.memory.ports import LanguageModel
from madeleine.patrol.deciding.answers import Refused

ATTEMPTS = 2

Found = TypeVar("Found")


async def ask(
    language: LanguageModel,
    prompt: Callable[[str], Prompt],
    shape: type[Answer],
    judge: Callable[[Answer], Found | Refused],
    spend: Callable[[Spent], None],
) -> Found:
    """What `judge` makes of the answer. `prompt` is given what was wrong with the answer before, "" at first."""
    model = "that was asked"

    def spent(one: Spent) -> None:
        nonlocal model
        model = one.model
        spend(one)

    complaint = ""
    for _ in range(ATTEMPTS):
        found = judge(await language.ask(prompt(complaint), shape, spent))
        if not isinstance(found, Refused):
            return found
        complaint = found.reason
    raise UnusableAnswer(model, complaint)


def again(complaint: str) -> str:
    """The end of a prompt that is put a second time."""
    return f"\n\nYour answer before this one could not be used. {complaint} Answer again, in full." if complaint else ""
