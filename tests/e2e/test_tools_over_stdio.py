"""The tools, from a real client to the disk and back, in both protocol eras."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from madeleine.patrol.report import PATROL_STEPS
from tests.e2e.conftest import Lodger
from tests.e2e.serving import ERAS, EVERY_TOOL, Era, call_tool, connected, raw_connection, tool_error

DINNERS = (
    "Grandmother cooked lasagne with nutmeg for the family on Sunday",
    "We had Sunday dinner at grandmother's: lasagne and lemon cake",
    "Uncle Pietro brought wine to the Sunday family dinner at grandmother's",
    "The Sunday family dinner at grandmother's was moved because she was tired",
)
OTHERS = (
    "The CI moved to Buildkite",
    "Mara broke her arm while skiing",
    "The rent rises by eight percent in January",
    "Tom plays the cello in the city orchestra",
    "The passport expires in May",
    "Ada reads a novel about whales",
)


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return cast("Era", request.param)


async def test_the_tools_are_listed_with_strict_schemas_and_all_four_hints(lodger: Lodger, era: Era) -> None:
    async with lodger.connected(era=era) as client:
        tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == EVERY_TOOL
    for tool in tools:
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert tool.annotations is not None
        hints = tool.annotations
        assert None not in (
            hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint,
        )  # fmt: skip


async def test_what_is_stored_is_recalled_at_once_in_all_three_formats(tmp_path: Path, era: Era) -> None:
    """Ruling 1; spec P9, L4."""
    async with connected(tmp_path, era=era) as client:
        stored = await call_tool(client, "store", text=DINNERS[0], feeling="I felt at home", when="2026-03-01")
        query = "What did grandmother cook?"
        fragments = await call_tool(client, "recall", query=query)
        precise = await call_tool(client, "recall", query=query, format="memories", details=True)
        prompt = await call_tool(client, "recall", query=query, format="prompt")
    assert stored["status"] == "stored"
    body = fragments["fragments"]
    assert body.startswith("<recall>")
    assert body.endswith("</recall>")
    assert set(body.removeprefix("<recall>").removesuffix("</recall>").split(" / ")) == {DINNERS[0], "I felt at home"}
    [memory] = precise["memories"]
    assert (memory["id"], memory["text"], memory["when"]) == (stored["id"], DINNERS[0], "2026-03-01")
    assert memory["provenance"]["tool"] == "store"
    assert prompt["prompt"] == f"<memory>\n[EPISODIC] 2026-03-01: {DINNERS[0]}\n</memory>"
    assert 0 < precise["budget_used"] < 1


async def test_an_unrelated_query_recalls_nothing_and_has_no_tag(lodger: Lodger, era: Era) -> None:
    """Ruling 8; spec P9."""
    async with lodger.connected(era=era) as client:
        for text in DINNERS:
            await call_tool(client, "store", text=text)
        answer = await call_tool(client, "recall", query="the boiling point of tungsten")
    assert (answer["fragments"], "sources" in answer) == ("", False)


async def test_every_schema_holds_for_the_answers(lodger: Lodger, era: Era) -> None:
    async with lodger.connected(era=era) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        answers = [("store", await call_tool(client, "store", text=text, themes=["family dinner"])) for text in DINNERS]
        answers += [
            ("recall", await call_tool(client, "recall", query="Sunday dinner", format="memories")),
            ("search_memory", await call_tool(client, "search_memory", query="dinner", limit=2)),
            ("run_patrol", await call_tool(client, "run_patrol", dry_run=True)),
            ("run_patrol", await call_tool(client, "run_patrol")),
            ("recall_memory", await call_tool(client, "recall_memory")),
            ("recall_memory", await call_tool(client, "recall_memory", ids=[answers[0][1]["id"], "nobody's"])),
        ]
    for name, answer in answers:
        jsonschema.validate(answer, schemas[name] or {})


async def test_a_patrol_sorts_memories_into_a_cluster_and_tells_its_progress(lodger: Lodger, era: Era) -> None:
    """spec P6 ❶, P7, P12; rulings 4 and 5."""
    seen: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with lodger.connected(era=era) as client:
        for text in DINNERS:
            await call_tool(client, "store", text=text, themes=["family dinner"])
        await call_tool(client, "store", scenes=[{"text": text} for text in OTHERS])
        rehearsal = await call_tool(client, "run_patrol", dry_run=True, details=True)
        assert (await call_tool(client, "recall_memory"))["clusters"] == []
        answer = await client.call_tool("run_patrol", {"details": True}, progress_callback=hear)
        report = answer.structured_content
        clusters = (await call_tool(client, "recall_memory"))["clusters"]
        made = next(cluster for cluster in clusters if not cluster["is_root"])
        inside = await call_tool(client, "recall_memory", cluster_id=made["id"])
    steps = {step["name"]: step for step in report["steps"]}
    assert rehearsal["dry_run"]
    assert steps["assign"] == rehearsal["steps"][0]
    assert steps["assign"]["new_clusters"] == 1
    assert "BYOK key not set" in steps["consolidate"]["skipped"]
    assert "BYOK key not set" in steps["split"]["skipped"]
    assert made["name"] == "family dinner"
    assert {cluster["name"] for cluster in clusters if cluster["is_root"]} == {"Business", "Private"}
    assert made["active"] == len(inside["memories"]) >= 3
    assert [(done, total) for done, total, _ in seen] == [
        (n, len(PATROL_STEPS)) for n in range(1, len(PATROL_STEPS) + 1)
    ]


async def test_search_finds_words_newest_first_page_by_page(lodger: Lodger, era: Era) -> None:
    """spec P11, H3, H4."""
    async with lodger.connected(era=era) as client:
        for day, text in enumerate(DINNERS, 1):
            await call_tool(client, "store", text=text, when=f"2026-03-{day:02}", themes=["dinner"])
        first = await call_tool(client, "search_memory", query="DINNER lasagne", limit=3)
        second = await call_tool(client, "search_memory", query="DINNER lasagne", limit=3, cursor=first["next_cursor"])
        both = await call_tool(client, "search_memory", query="dinner lasagne", mode="and")
        foreign = await tool_error(client, "search_memory", {"query": "other", "cursor": first["next_cursor"]})
    hits = first["hits"] + second["hits"]
    assert [hit["text"] for hit in hits] == list(DINNERS[::-1])
    assert hits[-1]["when"] == "2026-03-01"
    assert "next_cursor" not in second
    assert {"source", "id", "when", "text"} == set(hits[0])
    assert {hit["text"] for hit in both["hits"]} == {DINNERS[0], DINNERS[1]}
    assert "another search" in foreign


async def test_the_same_scene_again_is_reinforced_and_a_differing_fact_is_not(lodger: Lodger, era: Era) -> None:
    """spec T6."""
    async with lodger.connected(era=era) as client:
        first = await call_tool(client, "store", text="Anna paid 40 euros for the cello strings")
        again = await call_tool(client, "store", text="Anna paid 40 euros for the cello strings.")
        other = await call_tool(client, "store", text="Anna paid 45 euros for the cello strings")
        whole = await call_tool(client, "recall_memory", ids=[first["id"]])
    assert (again["id"], again["status"]) == (first["id"], "reinforced")
    assert other["status"] == "stored"
    assert whole["memories"][0]["access_count"] == 1


async def test_a_repeated_key_stores_nothing_again(lodger: Lodger, era: Era) -> None:
    async with lodger.connected(era=era) as client:
        first = await call_tool(client, "store", text="The meeting is at ten", key="k1")
        again = await call_tool(client, "store", text="The meeting is at ten", key="k1")
        other = await tool_error(client, "store", {"text": "The meeting is at eleven", "key": "k1"})
    assert again == first | {"repeated": True}
    assert "k1" in other


async def test_recalling_activates_and_rewinds_the_clock(lodger: Lodger, era: Era) -> None:
    """spec P9, P10; ruling 2."""
    async with lodger.connected(era=era) as client:
        stored = await call_tool(client, "store", text=DINNERS[0])
        await call_tool(client, "run_patrol", steps=["age"])
        before = await call_tool(client, "recall_memory", ids=[stored["id"]])
        await call_tool(client, "recall", query="grandmother's lasagne")
        after = await call_tool(client, "recall_memory", ids=[stored["id"]])
    assert (before["memories"][0]["session_count"], before["memories"][0]["reactivation_count"]) == (1, 0)
    # One for being looked at by its id, one for the recall.
    assert (after["memories"][0]["session_count"], after["memories"][0]["reactivation_count"]) == (0, 2)


BAD: tuple[tuple[dict[str, object], str], ...] = (
    ({"text": "x", "colour": "red"}, "Unknown argument 'colour'"),
    ({"text": 5}, "text"),
    ({"text": "x", "importance": "0.5"}, "importance"),
    ({"text": None}, "null"),
    ({}, "required"),
    ({"text": ""}, "empty"),
    ({"text": " \n\t"}, "empty"),
    ({"text": "x" * 32_001}, "32,000"),
    ({"text": "x", "importance": 1.5}, "importance"),
    ({"text": "x", "emotions": 3}, "emotions"),
    ({"text": "x", "when": [{"date": "2026-01-01", "action": "a", "b": 1}]}, "when"),
)


async def test_bad_input_is_refused_with_advice_and_nothing_is_stored(lodger: Lodger, era: Era) -> None:
    async with lodger.connected(era=era) as client:
        for arguments, named in BAD:
            message = await tool_error(client, "store", dict(arguments))
            assert named in message
            assert "Nothing was done" in message
        answer = await call_tool(client, "search_memory", query="x")
    assert answer["hits"] == []


async def test_a_corrected_memory_is_recalled_as_it_is_and_shows_what_it_was(lodger: Lodger, era: Era) -> None:
    async with lodger.connected(era=era) as client:
        stored = await call_tool(client, "store", text="Ann moved into the yellow house in Rome", themes=["moving"])
        done = await call_tool(
            client, "update_memory", id=stored["id"], text="Ann moved into a hut in Oslo", pinned=True
        )
        same = await call_tool(client, "update_memory", id=stored["id"], pinned=True)
        [now] = (await call_tool(client, "recall", query="Where did Ann move?", format="memories"))["memories"]
        [whole] = (await call_tool(client, "recall_memory", ids=[stored["id"]]))["memories"]
        old = await call_tool(client, "search_memory", query="yellow Rome")
        nothing = await tool_error(client, "update_memory", {"id": stored["id"]})
        nobody = await tool_error(client, "update_memory", {"id": "nobody", "pinned": True})
    assert done == {"id": stored["id"], "changed": ["text", "pinned"]}
    assert same == {"id": stored["id"], "changed": []}
    assert now["text"] == whole["text"] == "Ann moved into a hut in Oslo"
    [before] = whole["history"]
    assert (before["text"], before["pinned"]) == ("Ann moved into the yellow house in Rome", False)
    assert {"until", "changed_by"} <= set(before)
    assert "themes" not in before
    assert old["hits"] == []
    assert "Nothing to change" in nothing
    assert "There is no memory 'nobody'" in nobody


async def test_a_read_only_server_recalls_and_leaves_no_trace(lodger: Lodger, era: Era) -> None:
    async with lodger.connected(era=era) as client:
        stored = await call_tool(client, "store", text=DINNERS[0])
    async with lodger.connected(era=era, more={"MADELEINE_READ_ONLY": "true"}) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["recall", "recall_memory", "search_memory"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert len((await call_tool(client, "recall", query="grandmother's lasagne"))["sources"]) == 1
        assert (await call_tool(client, "search_memory", query="lasagne"))["hits"]
        await call_tool(client, "recall_memory", ids=[stored["id"]])
        assert "read-only" in await tool_error(client, "store", {"text": "x"})
        assert "Call store" not in (client.instructions or "")
    async with lodger.connected(era=era) as client:
        [whole] = (await call_tool(client, "recall_memory", ids=[stored["id"]]))["memories"]
    assert whole["reactivation_count"] == 0


async def test_an_unknown_tool_is_a_protocol_error(lodger: Lodger, era: Era) -> None:
    async with lodger.connected(era=era) as client:
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("forget_everything", {})


async def test_memory_survives_a_restart(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        stored = await call_tool(client, "store", text=DINNERS[2], pinned=True, lesson="Ask Pietro about wine")
    async with connected(tmp_path) as client:
        answer = await call_tool(client, "recall", query="Who brought the wine?", format="memories")
        [whole] = (await call_tool(client, "recall_memory", ids=[stored["id"]]))["memories"]
    assert answer["memories"][0]["id"] == stored["id"]
    assert (whole["pinned"], whole["lesson"], whole["status"]) == (True, "Ask Pietro about wine", "active")


@pytest.mark.slow
async def test_a_second_process_on_a_memory_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    with ExitStack() as first:
        owner = first.enter_context(raw_connection(tmp_path))
        owner.store(json.dumps({"text": DINNERS[0]}).encode())
        async with connected(tmp_path) as second:
            message = await tool_error(second, "recall", {"query": "dinner"})
            assert "in use by another Madeleine" in message
            assert "MADELEINE_DATA_DIR" in message
            first.close()
            answer = await call_tool(second, "recall", query="Who cooked lasagne?", format="memories")
    assert answer["memories"][0]["text"] == DINNERS[0]
