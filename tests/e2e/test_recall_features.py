"""Recall's profiles, filters, re-ranker and other words (spec L2, T7, O12), from a real client to the disk and back."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.e2e.conftest import Lodger
from tests.e2e.serving import call_tool, connected, tool_error
from tests.language.stub import ModelRequest, language_server, model_says
from tests.language.stub import http_error as refused_by_the_model
from tests.models import cross_encoder

pytestmark = pytest.mark.slow

DINNERS = (
    "Grandmother cooked lasagne with nutmeg for the family on Sunday",
    "We had Sunday dinner at grandmother's: lasagne and lemon cake",
    "The Sunday family dinner at grandmother's was moved because she was tired",
)
QUERY = "What did grandmother cook on Sunday?"


def texts(answer: dict[str, Any]) -> list[str]:
    return [memory["text"] for memory in answer["memories"]]


async def test_profiles_preferences_and_themes_can_be_asked_for(tmp_path: Path) -> None:
    """spec L2, T7, O12"""
    async with connected(tmp_path, more={"MADELEINE_RANKING": "linear"}) as client:
        for text in DINNERS:
            await call_tool(client, "store", text=text, themes=["Family"])
        tagged = await call_tool(
            client, "store", text="Grandmother moved Sunday dinner as the oven broke", themes=["FAMILY", "oven"]
        )
        preference = "I prefer to hear first what grandmother said when she cooked."
        await call_tool(client, "store", text=preference, category="procedural")
        orders = {
            ranking: await call_tool(client, "recall", query=QUERY, format="memories", limit=6, ranking=ranking)
            for ranking in ("blended", "rrf", "linear", "associative")
        }
        default = await call_tool(client, "recall", query=QUERY, format="memories", limit=6)
        prompt = await call_tool(client, "recall", query=QUERY, format="prompt")
        both = await call_tool(client, "recall", query=QUERY, format="memories", themes=["family", "Oven"])
        none = await call_tool(client, "recall", query="the boiling point of tungsten", themes=["family"])
        words = await tool_error(client, "recall", {"query": QUERY, "ranking": "best"})
    assert [memory["score"] for memory in default["memories"]] == [
        memory["score"] for memory in orders["linear"]["memories"]
    ]
    for answer in orders.values():
        assert len(answer["memories"]) == 4
        assert [memory["text"] for memory in answer["preferences"]] == [preference]
        scores = [memory["score"] for memory in answer["memories"]]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)
    assert len({tuple(memory["score"] for memory in answer["memories"]) for answer in orders.values()}) == 4
    assert prompt["prompt"].splitlines()[:2] == ["<memory>", f"[PROCEDURAL] {preference}"]
    assert [memory["id"] for memory in both["memories"]] == [tagged["id"]]
    assert len(none["sources"]) == 3, "a filter is a match"
    assert "ranking" in words
    assert "associative" in words


async def test_with_the_non_inferable_filter_a_store_without_the_theme_gets_advice(
    tmp_path: Path,
) -> None:
    """spec O12: advisory, never blocks."""
    async with connected(tmp_path, more={"MADELEINE_RECALL_NON_INFERABLE_ONLY": "true"}) as client:
        plain = await call_tool(client, "store", text=DINNERS[0])
        tagged = await call_tool(client, "store", text=DINNERS[1], themes=["Non-Inferable"])
        answer = await call_tool(client, "recall", query=QUERY, format="memories")
        still = await call_tool(client, "recall_memory", ids=[plain["id"]])
    assert plain["status"] == "stored"
    assert "'non-inferable'" in plain["notice"]
    assert "non-inferable" not in tagged.get("notice", "")
    assert [memory["id"] for memory in answer["memories"]] == [tagged["id"]]
    assert texts(still) == [DINNERS[0]]


async def test_a_local_cross_encoder_reranks_and_an_unavailable_one_changes_nothing(
    tmp_path: Path,
) -> None:
    """spec L2, step 4, with its fallback."""
    model = cross_encoder(tmp_path / "model")
    more = {"MADELEINE_RERANKER": str(model), "MADELEINE_RERANKER_SECONDS": "30"}
    query = "lasagne and lemon cake at grandmother's"
    async with connected(tmp_path / "data", more=more) as client:
        for text in DINNERS:
            await call_tool(client, "store", text=text)
        ranked = await call_tool(client, "recall", query=query, format="memories")
    async with connected(tmp_path / "data", more={"MADELEINE_RERANKER": "nobody/knows-this"}) as client:
        fallen_back = await call_tool(client, "recall", query=query, format="memories")
    assert texts(ranked)[0] == DINNERS[1]
    assert "notice" not in ranked
    assert set(texts(fallen_back)) == set(texts(ranked))
    assert fallen_back["memories"][0]["score"] < ranked["memories"][0]["score"]
    assert "nobody/knows-this" in fallen_back["notice"]


async def test_a_language_model_finds_other_words_and_one_that_fails_does_no_harm(tmp_path: Path) -> None:
    """spec O12"""
    asked: list[ModelRequest] = []

    def answer(one: ModelRequest) -> Any:
        asked.append(one)
        assert one.shape == "RecallSufficiencyVerdict"
        if "violin" in one.text:
            return refused_by_the_model(400)
        return model_says({"sufficient": False, "query": "grandmother Sunday dinner"})

    with language_server(answer) as stub:
        more = stub.environment() | {
            "MADELEINE_RECALL_REFORMULATION": "true",
            "MADELEINE_RECALL_REFORMULATION_SECONDS": "60",
        }
        async with connected(tmp_path, more=more) as client:
            for text in DINNERS:
                await call_tool(client, "store", text=text)
            found = await call_tool(client, "recall", query="quantum chromodynamics", format="memories", details=True)
            failed = await call_tool(client, "recall", query="violin practice", format="memories")
    assert set(texts(found)) == set(DINNERS)
    assert found["reformulated"] == ["grandmother Sunday dinner"]
    assert asked[0].model == "small"
    assert failed["memories"] == []
    assert failed["notice"].startswith("The query was not reworded.")


async def test_what_is_asked_for_word_by_word_is_found_among_many_that_differ_in_numbers(lodger: Lodger) -> None:
    """All in one session, as turns that follow one another: those with a neighbour much like them must not lead."""
    hidden = Random(7).choices(("lamp", "kettle", "violin", "ladder", "compass"), k=200)
    told = [f"Round {at // 25} number {at % 25}: somebody hid a {hidden[at]} in attic {at % 25}" for at in range(200)]
    async with lodger.connected() as client:
        for text in told:
            await call_tool(client, "store", text=text, session_id="hiding")
        for text in told[5::10]:
            assert text in texts(await call_tool(client, "recall", query=text, format="memories", limit=3))
