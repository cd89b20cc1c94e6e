"""The small stores: what their questions name is there, and how an answer counts."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.small.__main__ import STORES, Answered, Groups, figures


def test_every_question_names_memories_of_its_store() -> None:
    for path in STORES.glob("*.json"):
        store = json.loads(path.read_text("utf-8"))
        keys = [told["key"] for told in store["memories"]]
        assert len(set(keys)) == len(keys)
        for at, told in enumerate(store["memories"]):
            assert told.get("supersedes") in (None, *keys[:at]), told
        for question in store["questions"]:
            assert {*question["answer"], *question.get("was", [])} <= set(keys), question


def test_an_answer_counts_by_its_place_in_its_group() -> None:
    questions: list[dict[str, Any]] = [
        {"answer": ["a"], "was": ["b"]},
        {"answer": ["p"]},
        {"answer": ["n"]},
        {"answer": []},
    ]
    groups = Groups(("a", "b"), ("p",), ("n",))
    found = figures([Answered("s", question, groups, groups) for question in questions], lambda one: one.recalled)
    assert found == {
        "questions": 4, "first, %": 66.7, "within ten, %": 100.0, "not only near, %": 66.7,
        "current before old, %": 100.0, "empty where unknown, %": 0.0,
    }  # fmt: skip
