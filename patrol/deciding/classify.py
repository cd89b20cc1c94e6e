"""Business or Private, by a small language model (spec P6 ❶.5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial

from madeleine.memory.language import Prompt, Rejected
from madeleine.memory.metered_model import MeteredModel
from madeleine.memory.rules.dynamics.roots import Root
from madeleine.memory.rules.prompting.fragments import quoted
from madeleine.patrol.deciding.offer import cut
from madeleine.patrol.deciding.prompts import DATA, block
from madeleine.patrol.deciding.shapes import ClassificationShape

BATCH = 50
ACTION = 300
"""Characters of an action that tell which root it belongs to."""

SYSTEM = f"""\
You sort a being's memories. Each line is one, with its number `n`. Say for every number whether it is Business (work,
customers, projects, code, money earned, career) or Private (family, friends, home, health, feelings, leisure, the being
itself). Where both fit, choose what it is mainly about. Answer every number exactly once.

{DATA}"""


async def classify(model: MeteredModel, actions: Sequence[str]) -> list[Root]:
    """A root for each action, in order. Raises `LanguageModelUnavailable`, `UnusableAnswer`."""
    roots: list[Root] = []
    for start in range(0, len(actions), BATCH):
        batch = actions[start : start + BATCH]
        roots += await model.ask(classify_prompt(batch), ClassificationShape, partial(roots_of, last=len(batch)))
    return roots


def classify_prompt(actions: Sequence[str]) -> Prompt:
    lines = (
        quoted(json.dumps({"n": number, "text": quoted(cut(action, ACTION))}, ensure_ascii=False))
        for number, action in enumerate(actions, start=1)
    )
    return Prompt(purpose="classify", system=SYSTEM, text=block(*lines), size="small", max_tokens=2_000)


def roots_of(answer: ClassificationShape, last: int) -> list[Root] | Rejected:
    """Of the numbers from 1 to `last`, in order."""
    if Counter(one.number for one in answer.roots) != Counter(range(1, last + 1)):
        return Rejected(f"Name each number from 1 to {last} exactly once.")
    by_number = {one.number: one.root for one in answer.roots}
    return [by_number[number] for number in range(1, last + 1)]
