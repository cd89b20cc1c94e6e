"""One search over memories, diary, conversations and notes, through a real client (spec H1 to H4)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest
from mcp.client.client import Client

from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import ADA, WordEmbedder
from tests.e2e.serving import call_tool, connected, tool_error
from tests.e2e.test_content_is_safe import madeleine

EVERY = {"MADELEINE_TOOLSETS": "all"}
QUESTION = "Which ramen did Zoé want in Kyoto?"


async def live(client: Client) -> dict[str, str]:
    """A scene, a conversation and a day's entry; the id of each by its source."""
    stored = await call_tool(
        client,
        "store",
        text="Zoé ate ramen at the counter",
        when=str(datetime.now(UTC).date()),
        themes=["Kyoto", "food"],
    )
    heard = await call_tool(
        client, "observe", session_id="s1",
        messages=[
            {"role": "user", "speaker": "Zoé", "text": "Ramen " + "and more ramen " * 40, "when": "2026-02-02"},
            {"role": "assistant", "text": "Noted.", "when": "2026-02-02"},
        ],
    )  # fmt: skip
    report = await call_tool(client, "run_patrol", steps=["diary"])
    [offer] = [one for one in report["pending"] if one["kind"] == "diary"]
    decision = {
        "offer": offer["offer"], "diary": "We went to Kyoto.\nThe ramen was hot.\nI was glad.",
        "think_md": ["Ramen.", "Kyoto.", "Zoé."],
    }  # fmt: skip
    await call_tool(client, "run_patrol", decisions=[decision])
    return {"memories": stored["id"], "chat": heard["ids"][0]}


@pytest.mark.slow
async def test_what_was_lived_said_written_and_noted_is_found_by_one_search(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    (tmp_path / "notes.txt").write_text("Buy ramen for Zoé\n", encoding="utf-8")
    madeleine(data_dir, "note", str(tmp_path / "notes.txt"))
    today = datetime.now(UTC).date()
    async with connected(data_dir, more=EVERY) as client:
        ids = await live(client)
        [schema] = [tool.output_schema for tool in (await client.list_tools()).tools if tool.name == "search_memory"]
        answer = await call_tool(client, "search_memory", query="RAMEN", details=True)
        hits = {hit["source"]: hit for hit in answer["hits"]}
        pages = [await call_tool(client, "search_memory", query="ramen", limit=3)]
        pages.append(await call_tool(client, "search_memory", query="ramen", limit=3, cursor=pages[0]["next_cursor"]))
        told = await call_tool(client, "search_memory", query="ramen", themes=["kyoto"])
        about = await call_tool(client, "search_memory", query=QUESTION, mode="subject", limit=50)
        said = await call_tool(client, "search_memory", query=QUESTION, mode="subject", sources=["chat"])
        no_page = await tool_error(
            client, "search_memory", {"query": QUESTION, "mode": "subject", "cursor": pages[0]["next_cursor"]}
        )
        context = await call_tool(client, "context", message=QUESTION)
        too_many = await tool_error(client, "search_memory", {"query": " ".join(map(str, range(33)))})
    jsonschema.validate(answer, schema or {})
    assert sorted(hits) == ["chat", "diary", "memories", "notes"]
    assert [hit["when"][:10] for hit in answer["hits"]] == sorted(
        (hit["when"][:10] for hit in answer["hits"]), reverse=True
    )
    assert {source: hits[source]["id"] for source in ids} == ids
    assert abs((datetime.fromisoformat(hits["diary"]["id"]).date() - today).days) <= 1
    assert sorted(hits["diary"]["themes"]) == ["Kyoto", "food"]
    assert "themes" not in hits["chat"] | hits["notes"]
    assert (hits["chat"]["actors"], hits["chat"]["provenance"]["session_id"]) == (["Zoé"], "s1")
    assert len(hits["chat"]["text"]) <= 400
    assert [hit["id"] for page in pages for hit in page["hits"]] == [hit["id"] for hit in answer["hits"]]
    assert {hit["source"] for hit in told["hits"]} == {"memories", "diary"}
    assert {hit["id"] for hit in about["hits"]} == {hit["id"] for hit in answer["hits"]}
    assert "next_cursor" not in about
    assert [hit["id"] for hit in said["hits"]] == [ids["chat"]]
    assert "mode subject has one page" in no_page
    assert "33 words" in too_many
    # What the context shows elsewhere, as the day's entry, it does not show twice.
    assert ids["memories"] in json.dumps(context)
    audited = [json.loads(line) for line in madeleine(data_dir, "audit", "--json", "--being", "ada").splitlines()]
    shown = [entry["ids"] for entry in audited if entry["tool"] == "search_memory"]
    assert shown[0] == [hit["provenance"]["full_id"] for hit in answer["hits"]]


async def test_a_search_counts_its_memories_by_words_and_by_tags_and_a_reader_s_does_not(tmp_path: Path) -> None:
    """spec P11"""
    tools = Toolset(make_all_tools(Random(1)), max_text_chars=1_000)
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder()) as memory:

        async def asked(tool: str, by: Toolset = tools, **arguments: Any) -> dict[str, Any]:
            answer = await by.call_tool(tool, arguments, ToolCallContext(ADA, memory.use_cases))
            assert isinstance(answer.structured_content, dict)
            return answer.structured_content

        stored = await asked("store", text="Zoé ate ramen")
        for by in (tools, tools.for_caller("agent", read_only=True)):
            assert (await asked("search_memory", by, query="ramen"))["hits"]
            assert (await asked("search_memory", by, query="How was the ramen?", mode="subject"))["hits"]
        [one] = (await asked("recall_memory", ids=[stored["id"]]))["memories"]
    assert one["reactivation_count"] == 2
