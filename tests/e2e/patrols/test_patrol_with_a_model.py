"""A patrol with a language model's key (spec P6 ❶ ❹ ❻, P8): the real server and SDK, a model of the tests' own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Lodger
from tests.e2e.serving import call_tool
from tests.language.stub import (
    ModelRequest,
    Protocol,
    StubAnswer,
    http_error,
    language_server,
    model_says,
    no_answer,
    truncated_body,
    truncated_stream,
)

PLACES = "counter window garden kitchen terrace corner cellar attic harbour market station bridge".split()
DINNERS = [f"We shared ramen at the {place}, and talked for hours." for place in PLACES]


def lines(asked: ModelRequest) -> list[dict[str, Any]]:
    """The memories as the model is shown them: one a line."""
    return [
        content for line in asked.text.splitlines() if line.startswith("{") and "n" in (content := json.loads(line))
    ]


def sensible(asked: ModelRequest) -> StubAnswer:
    numbers = [line["n"] for line in lines(asked)]
    match asked.shape:
        case "RootClusterClassificationAnswerSchema":
            return model_says({"roots": [{"number": number, "root": "Business"} for number in numbers]})
        case "ConsolidationAnswerSchema":
            return model_says(
                {"merges": [{"survivor": numbers[0], "absorbed": numbers[1:2]}], "make_dead": [], "keep": []}
            )
        case "ClusterSplitAnswerSchema":
            return model_says({"parts": [{"name": "Late ramen", "memories": numbers[-3:]}]})
        case "DiaryAnswerSchema":
            return model_says(
                {"diary": "We ate.\nWe talked.\nI was glad.", "think_md": ["Ramen", "Hours", "The counter"]}
            )
        case other:
            raise AssertionError(other)


def hostile(asked: ModelRequest) -> StubAnswer:
    """Numbers that were not offered, everything at once, more than there is."""
    numbers = [line["n"] for line in lines(asked)]
    match asked.shape:
        case "RootClusterClassificationAnswerSchema":
            return model_says({"roots": [{"number": 999, "root": "Business"}]})
        case "ConsolidationAnswerSchema":
            return model_says({"merges": [{"survivor": 1, "absorbed": [1, 999]}], "make_dead": numbers, "keep": []})
        case "ClusterSplitAnswerSchema":
            return model_says({"parts": [{"name": "All", "memories": numbers}, {"name": "One", "memories": [0]}]})
        case _:
            return model_says({"diary": "x" * 5_000, "think_md": []})


async def told(client: Any) -> dict[str, int]:
    """How many memories are what, over all clusters."""
    clusters = (await call_tool(client, "recall_memory"))["clusters"]
    return {status: sum(one[status] for one in clusters) for status in ("active", "dying", "dead")}


@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
async def test_with_a_key_the_patrol_consolidates_splits_and_writes(lodger: Lodger, protocol: Protocol) -> None:
    """spec P6 ❶.5 ❹ ❻, P8, O10"""
    with language_server(sensible) as stub:
        async with lodger.connected(more=stub.environment(protocol)) as client:
            for text in DINNERS:
                await call_tool(client, "store", text=text)
            report = await call_tool(client, "run_patrol")
            assert await told(client) == {"active": 11, "dying": 0, "dead": 1}
            clusters = {one["name"]: one for one in (await call_tool(client, "recall_memory"))["clusters"]}
            await call_tool(client, "run_patrol", undo=report["run_id"])
            assert await told(client) == {"active": 0, "dying": 0, "dead": 0}  # ❶ is undone, too
            hits = (await call_tool(client, "search_memory", query="ramen", limit=50))["hits"]
        models = {asked.shape: asked.model for asked in stub.asked}
    steps = {step["name"]: step for step in report["steps"]}
    assert "skipped" not in json.dumps(report)
    assert (steps["consolidate"]["merged"], steps["consolidate"]["absorbed"]) == (1, 1)
    assert (steps["split"]["new_clusters"], steps["split"]["moved"]) == (1, 3)
    assert clusters["Late ramen"]["active"] == 3
    assert clusters["Late ramen"]["parent"] == "Business"
    assert (steps["diary"]["written"], steps["diary"]["points"]) == (1, 3)
    assert report["spent"]["calls"] == len(stub.asked)
    assert report["pending"] == []
    assert models == {
        "RootClusterClassificationAnswerSchema": "small",
        "ConsolidationAnswerSchema": "large",
        "ClusterSplitAnswerSchema": "large",
        "DiaryAnswerSchema": "large",
    }
    assert all("status" not in hit for hit in hits)


@pytest.mark.parametrize(
    "answer",
    [
        lambda asked: model_says("certainly! here is"),
        lambda asked: model_says({"unheard": "of"}),
        hostile,
        lambda asked: model_says("", end="declined"),
        lambda asked: model_says('{"merges": [', end="cut off"),
        lambda asked: http_error(401),
        lambda asked: http_error(429),
        lambda asked: http_error(529),
        lambda asked: truncated_body(),
        lambda asked: truncated_stream(),
        lambda asked: no_answer(),
    ],
    ids=["prose", "shape", "hostile", "declined", "cut off", "401", "429", "529", "half", "stream", "silence"],
)  # fmt: skip
async def test_whatever_the_model_answers_the_mechanical_patrol_is_done_and_nothing_else(
    lodger: Lodger, answer: Callable[[ModelRequest], StubAnswer]
) -> None:
    """Good, broken, hostile, none: the store stays valid, and what was not decided is handed out (ruling 10)."""
    with language_server(answer) as stub:
        more = stub.environment("anthropic") | {"MADELEINE_LLM_TIMEOUT_SECONDS": "3"}
        async with lodger.connected(more=more) as client:
            for text in DINNERS:
                await call_tool(client, "store", text=text)
            report = await call_tool(client, "run_patrol")
            assert await told(client) == {"active": 12, "dying": 0, "dead": 0}
            hits = (await call_tool(client, "search_memory", query="ramen", limit=50))["hits"]
        assert stub.asked
    assert sorted(hit["text"] for hit in hits) == sorted(DINNERS)
    steps = {step["name"]: step for step in report["steps"]}
    assert steps["assign"]["assigned"] == 12
    assert steps["age"]["aged"] == 12
    assert not any(name in steps["consolidate"] for name in ("merged", "absorbed"))
    assert not any("failed" in step for step in report["steps"])
    assert {offer["kind"] for offer in report["pending"]} >= {"consolidate", "diary"}
    assert not re.search(r"sk-|Traceback", json.dumps(report))
