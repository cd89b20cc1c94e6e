"""The toolsets graph and self_editing, by real clients over stdio and by the command (spec O12, O14)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.hosting import hosted, madeleine, no_host_left
from tests.e2e.serving import call_tool, command, connected, tool_error

LINDT = {"text": "Lena works for Lindt in Zurich.", "actors": ["Lena"], "when": "2025-01-05"}
SISTER = {"text": "Ada's sister Lena moved to Bern.", "when": "2026-02-01"}
TOM = {"text": "Tom lives in Bern.", "actors": ["Tom"], "when": "2026-02-02"}


@pytest.mark.slow
async def test_the_graph_is_followed_stated_exported_and_forgotten(tmp_path: Path) -> None:
    data, export = tmp_path / "data", tmp_path / "memory.jsonl"
    with no_host_left(data):
        async with hosted(data) as client:
            for scene in (LINDT, SISTER, TOM):
                await call_tool(client, "store", **scene)
            await call_tool(
                client, "store", text="Lena works for Ricola in Laufen.", supersedes="m1", when="2026-03-01"
            )
            assert await call_tool(client, "relate", memory="m3", relations=[_relation("Tom", "knows", "Ada")]) == {
                "memory": "m3",
                "stated": 1,
            }
            lena = await call_tool(client, "related", entity="Lena", hops=2)
            works = [one for one in lena["relations"] if one["relation"] == "works for"]
            assert works == [_relation("Lena", "works for", "Ricola") | {"memory": "m4", "since": "2026-03-01"}]
            assert {one["name"]: one["via"] for one in lena["neighbours"] if "via" in one}["Tom"] == "Ada"
            assert [(one["id"], one.get("until")) for one in lena["timeline"]] == [
                ("m1", "2026-03-01"),
                ("m2", None),
                ("m4", None),
            ]
            assert (
                "no memory"
                in (
                    await tool_error(client, "relate", {"memory": "m99", "relations": [_relation("a", "b", "c")]})
                ).lower()
            )
            counts = (await call_tool(client, "recall_memory", ids=["m2"]))["memories"][0]
            assert counts["reactivation_count"] <= 1  # opening it is the one
        then = json.loads(madeleine(data, "graph", "lena", "--as-of", "2025-06-01", "--json").stdout)
        assert [one["object"] for one in then["relations"]] == ["Lindt"]
        shown = madeleine(data, "graph", "Ada", "--hops", "2").stdout
        assert all(part in shown for part in ("Relations", "knows", "sister", "Named together with", "Timeline"))
        assert "Bern" in madeleine(data, "graph").stdout
        assert madeleine(data, "export", str(export)).returncode == 0
    other = tmp_path / "other"
    with no_host_left(other):
        assert madeleine(other, "import", str(export)).returncode == 0
        async with hosted(other) as client:
            ada = await call_tool(client, "related", entity="Ada")
            assert [one["relation"] for one in ada["relations"]] == ["knows", "sister"]
            assert ada["relations"][0]["stated"] is True
            await call_tool(client, "forget", ids=["m2", "m3"])
            gone = await call_tool(client, "related", entity="Ada")
            assert gone["notice"] == "No memory names 'Ada'."


def _relation(subject: str, relation: str, object_: str) -> dict[str, str]:
    return {"subject": subject, "relation": relation, "object": object_}


@pytest.mark.slow
async def test_a_block_is_edited_by_two_clients_shown_at_the_start_moved_and_erased(tmp_path: Path) -> None:
    data, export = tmp_path / "data", tmp_path / "memory.jsonl"
    with no_host_left(data):
        async with hosted(data) as one, hosted(data) as two, hosted(data, being="bob") as bob:
            await call_tool(one, "edit_core_memory", name="human", text="Ada likes tea.")
            [read] = (await call_tool(two, "core_memory"))["blocks"]
            await call_tool(one, "edit_core_memory", name="human", version=1, old="tea", text="coffee")
            refused = await tool_error(
                two, "edit_core_memory", {"name": "human", "version": read["version"], "append": True, "text": "x"}
            )
            assert "-Ada likes tea.\n+Ada likes coffee." in refused
            too_long = await tool_error(two, "edit_core_memory", {"name": "human", "version": 2, "text": "w" * 2_001})
            assert "room for 2,000" in too_long
            secret = "sk-ant-api03-" + "a" * 95
            edited = await call_tool(two, "edit_core_memory", name="task", text=f"Use {secret}", description="now")
            assert sum(edited["redacted"].values()) == 1
            assert (await call_tool(bob, "core_memory"))["blocks"] == []
            for prompt in (
                (await call_tool(one, "recall"))["start"],
                (await call_tool(one, "context", message="What does she drink?"))["system_prompt"],
            ):
                assert "[human: version 2, 17 of 2000 characters]\nAda likes coffee." in prompt
            small = await call_tool(one, "context", token_limit=60, blocks=["start"])
            assert small["tokens"]["total"] <= 60
        assert madeleine(data, "export", str(export)).returncode == 0
    other = tmp_path / "other"
    with no_host_left(other):
        for _ in range(2):
            madeleine(other, "import", str(export))
        async with hosted(other) as client:
            versions = (await call_tool(client, "core_memory", name="human"))["blocks"]
            assert [block["text"] for block in versions] == ["Ada likes tea.", "Ada likes coffee."]
            await call_tool(client, "edit_core_memory", name="human", erase=True)
            assert [block["name"] for block in (await call_tool(client, "core_memory"))["blocks"]] == ["task"]
            audit = madeleine(other, "audit", "--json").stdout
            assert "coffee" not in audit
            assert "edit_core_memory" in audit
        madeleine(other, "import", str(export))
        async with hosted(other) as client:
            assert [block["name"] for block in (await call_tool(client, "core_memory"))["blocks"]] == ["task"]


async def test_both_toolsets_are_listed_on_request(tmp_path: Path) -> None:
    words = [*command(), "--toolsets", "graph,self_editing"]
    async with connected(tmp_path, words=words) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {"related", "relate", "core_memory", "edit_core_memory"}
        hints = {name: tool.annotations.read_only_hint for name, tool in tools.items() if tool.annotations}
        assert hints == {"related": True, "relate": False, "core_memory": True, "edit_core_memory": False}
