"""Retention, the archive, levels and projects as a client meets them (spec O2, O8)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from madeleine.memory.language_model import ModelCallCost, Prompt
from madeleine.memory.model import Scope
from madeleine.memory.retention.levels import MemoryLevelsOfBeings
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring import open_memory as wiring
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import ADA, WordEmbedder

TOOLS = Toolset(make_all_tools(random.Random(1)), max_text_chars=10_000)
RULES = {"retention": {"days": 30, "rules": {"social": None}}}
OPEN: list[timedelta] = [timedelta()]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    OPEN[0] = timedelta()
    monkeypatch.setattr(wiring, "utc_now", lambda: utc_now() + OPEN[0])


@asynccontextmanager
async def opened(tmp_path: Path, **settings: Any) -> AsyncIterator[OpenedMemoryStore]:
    own = Settings.model_validate({"data_dir": tmp_path, "being": "ada"} | settings)
    async with open_memory_store(own, embedder=WordEmbedder(64), background=False) as memory:
        yield memory


def caller(memory: OpenedMemoryStore, scope: Scope = ADA, language: Any = None) -> Callable[..., Any]:
    async def call(tool: str, **arguments: Any) -> Any:
        result = await TOOLS.call_tool(
            tool, arguments, ToolCallContext(scope, memory.use_cases, language_model=language)
        )
        if result.is_error:
            return "".join(part.text for part in result.content if isinstance(part, types.TextContent))
        return result.structured_content

    return call


def texts(answer: Any) -> set[str]:
    assert not isinstance(answer, str), answer
    return {one["text"] for one in answer["memories"]}


async def test_what_has_had_its_time_is_found_in_the_archive_and_not_recalled_until_it_is_back(tmp_path: Path) -> None:
    async with opened(tmp_path, **RULES) as memory:
        call = caller(memory)
        for text, more in (
            ("The kettle is red", {}),
            ("Tom likes tea", {"category": "social"}),
            ("Old teapot", {"pinned": True}),
        ):
            await call("store", text=text, **more)
        assert (await call("archive", action="plan"))["archived"] == 0
        OPEN[0] = timedelta(days=31)
        await call("store", text="The lamp is new")
        [group] = (await call("archive", action="plan"))["groups"]
        assert group["expired"] == ["m1"]
        dry = await call("run_patrol", steps=["retention"], dry_run=True, details=True)
        assert dry["steps"][0]["archived"] == 1
        run = await call("run_patrol", steps=["retention"])
        assert run["steps"] == [{"step": "+", "name": "retention", "archived": 1}]
        assert (await call("run_patrol", steps=["retention"]))["steps"] == [], "twice is once"
        assert texts(await call("recall", query="The kettle is red", format="memories")) == set()
        found = await call("search_memory", query="kettle")
        assert [(one["id"], one["text"]) for one in found["archived"]] == [("m1", "The kettle is red")]
        assert found["hits"] == []
        assert "archive" in found["notice"]
        assert [*(await call("recall_memory", ids=["m1"]))["archived"]] == ["m1"]
        [group] = (await call("archive", action="groups"))["groups"]
        assert (group["memories"], group["told_by"]) == (1, "extracts")
        await call("archive", action="summarise", group=group["group"], text="About a kettle.")
        assert [one["digest"] for one in (await call("archive", action="groups"))["groups"]] == ["About a kettle."]
        back = await call("archive", action="restore", ids=["m1", "m99"])
        assert (texts(back), back["missing"]) == ({"The kettle is red"}, ["m99"])
        assert "The kettle is red" in texts(await call("recall", query="The kettle is red", format="memories"))
        assert await memory.index.count() == await memory.ledger.index_source.count_memories() == 4


async def test_why_an_archived_memory_does_not_come_says_when_and_by_what_rule_it_went(tmp_path: Path) -> None:
    """It said that there is no such memory."""
    async with opened(tmp_path, **RULES) as memory:
        call = caller(memory)
        await call("store", text="The kettle is red")
        OPEN[0] = timedelta(days=31)
        await call("run_patrol", steps=["retention"])
        answer = await call("recall", query="kettle", explain="m1")
        [why] = answer["explain"]["memories"]
        assert (why["id"], why["outcome"]) == ("m1", "archived")
        day = (utc_now() + OPEN[0]).date().isoformat()
        assert f"on {day}, as its time was over" in why["reason"]
        assert "30 days" in why["reason"]
        assert "madeleine archive restore m1" in why["reason"]
        [why] = (await call("recall", query="kettle", explain="m99"))["explain"]["memories"]
        assert why["outcome"] == "unknown"


async def test_a_plan_tells_the_rules_in_force_and_whose_they_are(tmp_path: Path) -> None:
    """Spec O9: a being's own rules before those of the store."""
    own = {"rules": {"working": 7}, "days": 90}
    retention = {"days": 365, "rules": {"social": None}, "max_memories": 1_000, "beings": {"ada": own}}
    async with opened(tmp_path, retention=retention) as memory:
        plan = await caller(memory)("archive", action="plan")
    assert plan["max_memories"] == 1_000
    assert {rule["category"]: (rule.get("days"), rule["from"]) for rule in plan["rules"]} == {
        "working": (7, "the being's rule for the category"), "social": (None, "the store's rule for the category"),
        "episodic": (90, "the being's days"), "semantic": (90, "the being's days"),
        "procedural": (90, "the being's days"),
    }  # fmt: skip
    async with opened(tmp_path) as memory:
        plan = await caller(memory)("archive", action="plan")
    assert {rule["from"] for rule in plan["rules"]} == {"no rule"}


async def test_what_was_brought_back_stays_for_as_long_as_its_rule_says(tmp_path: Path) -> None:
    """The next run archived it again: its time was still over (spec O8)."""
    async with opened(tmp_path, **RULES) as memory:
        call = caller(memory)
        await call("store", text="The kettle is red")
        OPEN[0] = timedelta(days=31)
        await call("run_patrol", steps=["retention"])
        await call("archive", action="restore", ids=["m1"])
        OPEN[0] = timedelta(days=60)
        assert (await call("run_patrol", steps=["retention"]))["steps"] == []
        OPEN[0] = timedelta(days=62)
        assert (await call("run_patrol", steps=["retention"]))["steps"][0]["archived"] == 1


async def test_a_patrol_archives_by_itself_once_in_its_interval_and_its_undo_brings_all_back(tmp_path: Path) -> None:
    async with opened(tmp_path, **RULES) as memory:
        call = caller(memory)
        await call("store", text="The kettle is red")
        OPEN[0] = timedelta(days=31)
        run = await call("run_patrol")
        assert {"step": "+", "name": "retention", "archived": 1} in run["steps"]
        assert (await call("run_patrol", undo=run["run_id"]))["undone"]["unarchived"] == 1
        assert "retention" in str((await call("run_patrol"))["skipped"]), "what came back does not go the same day"
        assert texts(await call("recall", query="The kettle is red", format="memories")) == {"The kettle is red"}


class Summariser:
    async def answer_prompt(self, prompt: Prompt, schema: Any, on_cost: Callable[[ModelCallCost], None]) -> Any:
        return schema.model_validate({"summary": f"In short: {len(prompt.text.splitlines())} memories"})


async def test_a_language_model_tells_in_the_archive_what_sparse_memories_were_about(tmp_path: Path) -> None:
    async with opened(tmp_path, **RULES) as memory:
        call = caller(memory, language=Summariser())
        await call("store", text="We walked along the harbour")
        await call("store", text="commit 7f3c2ab fixes retry_count in src/http/client.py:214", category="semantic")
        OPEN[0] = timedelta(days=31)
        await call("run_patrol", steps=["retention"])
        groups = (await call("archive", action="groups"))["groups"]
        assert {(one["mode"], one["told_by"]) for one in groups} == {
            ("abstractive", "summary"), ("extractive", "extracts"),
        }  # fmt: skip


async def test_forgetting_by_its_short_id_reaches_the_archive(tmp_path: Path) -> None:
    async with opened(tmp_path, **RULES) as memory:
        call = caller(memory, replace(ADA, role="human"))
        await call("store", text="The kettle is red")
        OPEN[0] = timedelta(days=31)
        await call("run_patrol", steps=["retention"])
        # Without the background nothing scrubs the files; the tables are asked.
        forgotten = memory.ledger.erasure.forget(
            ADA, list((await memory.use_cases.short_ids.full_memory_id_by_given_id(ADA, ["m1"])).values()), at=utc_now()
        )
        assert len((await forgotten).erased_ids) == 1
        assert (await call("archive"))["memories"] == []


async def test_a_memory_of_a_project_is_found_only_there_and_one_without_everywhere(tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        call = caller(memory)
        await call("store", text="The boat needs paint", project="boat")
        await call("store", text="Paint costs 40 euros")
        await call("store", text="Always answer in German", category="procedural", project="boat")
        again = await call("store", text="The boat needs paint", project="house")
        assert again["status"] == "stored", "another project's does not count as told before"
        for project, boats in (("boat", 1), ("house", 1), ("", 0), ("car", 0)):
            there = {"project": project} if project else {}
            recalled = await call("recall", query="boat paint", format="memories", limit=9, **there)
            assert sum("boat" in text for text in texts(recalled)) == boats, project
            everywhere = await call("recall", query="What does paint cost?", format="memories", **there)
            assert "Paint costs 40 euros" in texts(everywhere), project
            hits = (await call("search_memory", query="paint", **there))["hits"]
            assert sum("boat" in hit["text"] for hit in hits) == boats, project
            subject = (await call("search_memory", query="Does the boat need paint?", mode="subject", **there))["hits"]
            assert sum("boat" in hit["text"] for hit in subject) == boats, project
            start = str(await call("recall", **there))
            assert ("German" in start) == (project == "boat"), project
        await call("run_patrol")
        for tool, arguments in (("recall", {}), ("search_memory", {"mode": "and"})):
            nothing = await call(tool, query="zanzibar kayak", **arguments)
            assert "in project: 'boat', 'house'" in nothing["notice"], tool
            assert "notice" not in await call(tool, query="zanzibar kayak", project="boat", **arguments), tool
        recalled = await call("recall", query="boat paint", format="memories", limit=9)
        assert not any("boat" in text for text in texts(recalled))


async def test_a_version_stays_in_the_project_of_what_it_supersedes(tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        call = caller(memory)
        await call("store", text="The fee is 5 euros")
        await call("store", text="The fee is 6 euros", supersedes="m1", project="boat")
        assert texts(await call("recall", query="What is the fee?", format="memories")) == {"The fee is 6 euros"}


async def test_a_level_says_what_it_forbids_and_what_it_keeps_ends(tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        await caller(memory)("store", text="The kettle is red")
        none = caller(memory, MemoryLevelsOfBeings("none").apply_to_scope(ADA))
        for tool, arguments in (
            ("store", {"text": "x"}), ("update_memory", {"id": "m1", "importance": 1}),
            ("observe", {"session_id": "s", "messages": [{"role": "user", "text": "hello"}]}),
            ("ingest", {"text": "x"}),
        ):  # fmt: skip
            assert "MADELEINE_LEVEL is none" in await none(tool, **arguments)
        assert texts(await none("recall", query="kettle red", format="memories")) == {"The kettle is red"}
        assert "no project is known" in await caller(memory, MemoryLevelsOfBeings("project").apply_to_scope(ADA))(
            "store", text="x"
        )
        session = caller(memory, MemoryLevelsOfBeings(beings={"ada": "session"}).apply_to_scope(ADA))
        await session("store", text="Cup 1 is on the shelf", session_id="s")
        boat = caller(memory, MemoryLevelsOfBeings("project", project="boat").apply_to_scope(ADA))
        await boat("store", text="The boat needs paint")
        assert (await session("store", text="The kettle is red", session_id="s"))["status"] == "reinforced"
        lasting = await caller(memory)("store", text="Cup 1 is on the shelf")
        assert lasting["status"] == "stored", "what is to last is not told by what ends with a session"
        assert (await session("archive", action="end", session_id="s"))["archived"] == 1
        assert (await boat("archive", action="end", project="boat"))["archived"] == 1
        shown = await boat("archive")
        assert {one["reason"] for one in shown["memories"]} == {
            "it was kept for a session, which has ended", "it was kept for a project, which has ended",
        }  # fmt: skip
        assert "Give either" in await boat("archive", action="end")
        assert await session("archive", action="end", session_id="s") == {"archived": 0}, "and no patrol is told of"
        assert "nothing beyond its session" in await session("store", text="x", level="project", project="boat")
        lasting_call = caller(memory)
        await lasting_call("store", text="The parking place is 14", session_id="s3", level="session")
        assert (await lasting_call("archive", action="end", session_id="s3"))["archived"] == 1, "for this call alone"
        await session("store", text="Bread is needed", session_id="s2")
        OPEN[0] = timedelta(hours=13)
        assert {"step": "+", "name": "retention", "archived": 1} in (await session("run_patrol"))["steps"]
