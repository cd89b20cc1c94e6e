"""A model that has to be fetched, and no network: words still work, and meaning follows when a model can be had."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serving import call_tool, connected
from tests.waiting import DEADLOCK_S

pytestmark = pytest.mark.slow

NOWHERE = "http://127.0.0.1:9"
"""The discard port of this machine, where nobody listens: every download fails at once."""
AWAY = {
    "MADELEINE_EMBEDDING_MODEL": "BAAI/bge-small-en-v1.5",
    "HTTP_PROXY": NOWHERE,
    "HTTPS_PROXY": NOWHERE,
    "ALL_PROXY": NOWHERE,
    "HF_HUB_ETAG_TIMEOUT": "1",
}
TEXT = "Grandmother baked a cake with apples from the garden"
IN_OTHER_WORDS = "Who made a fruit dessert?"


async def test_words_recall_and_answers_say_why_meaning_does_not(tmp_path: Path) -> None:
    async with connected(tmp_path, more=AWAY) as client:
        stored = await call_tool(client, "store", text=TEXT)
        answer = await call_tool(client, "recall", query="the apples of grandmother's garden", format="memories")
        search = await call_tool(client, "search_memory", query="apples")
    assert stored["status"] == "stored"
    assert "BAAI/bge-small-en-v1.5" in stored["notice"]
    assert answer["notice"].startswith("Meaning-based recall is off")
    assert [memory["id"] for memory in answer["memories"]] == [stored["id"]]
    assert [hit["id"] for hit in search["hits"]] == [stored["id"]]


async def test_vectors_are_filled_in_once_a_model_can_be_had(tmp_path: Path) -> None:
    async with connected(tmp_path, more=AWAY) as client:
        stored = await call_tool(client, "store", text=TEXT)
        assert found(await call_tool(client, "recall", query=IN_OTHER_WORDS, format="memories")) == []
    async with connected(tmp_path) as client, asyncio.timeout(DEADLOCK_S):
        while not found(answer := await call_tool(client, "recall", query=IN_OTHER_WORDS, format="memories")):
            pass
    assert found(answer) == [stored["id"]]
    assert "notice" not in answer


def found(answer: dict[str, Any]) -> list[str]:
    """Only meaning finds it; as no memory holds a word of the question, it is `near` (ruling 19)."""
    return [memory["id"] for memory in (*answer["memories"], *answer.get("near", []))]
