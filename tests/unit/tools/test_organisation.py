"""`share`, `search_shared`, `retract`, and policies in every prompt (spec O4, O5)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.audit import AuditQuery
from madeleine.memory.errors import InvalidInput, NotPermitted
from madeleine.memory.model import ORGANISATION_BEING_ID, BeingId, Role, Scope, is_connectable_being
from madeleine.server.http.tokens import valid_being_id_or_none
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.settings import Settings, read_settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import WordEmbedder
from tests.moving_values import exported

TOOLSET = Toolset(make_all_tools(random.Random(1)), max_text_chars=10_000)


@dataclass
class Company:
    memory: OpenedMemoryStore
    data_dir: Path

    async def call(self, who: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """`who`: being and role. Raises `AssertionError` with the message of a refusal."""
        being, role = who.split("/")
        caller: Role = role  # type: ignore[assignment]
        call = ToolCallContext(Scope(BeingId(being), "test", caller), self.memory.use_cases)
        result = await TOOLSET.for_caller(caller).call_tool(tool, arguments, call)
        text = "".join(part.text for part in result.content)  # type: ignore[union-attr]
        assert not result.is_error, text
        return result.structured_content or {}

    async def texts(self, who: str = "bo/agent", **arguments: Any) -> list[str]:
        return [one["text"] for one in (await self.call(who, "search_shared", **arguments))["memories"]]


@pytest.fixture
async def company(tmp_path: Path) -> AsyncIterator[Company]:
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder(), background=False) as memory:
        yield Company(memory, tmp_path)


async def test_what_one_shares_all_find_with_its_author_and_nobody_finds_among_its_own(company: Company) -> None:
    shared = await company.call("ada/agent", "share", text="The staging server is reset on Mondays")
    assert shared == {"id": "s1", "kind": "knowledge", "status": "shared"}
    [found] = (await company.call("bo/agent", "search_shared", query="staging server reset"))["memories"]
    assert (found["id"], found["author"], found["author_role"]) == ("s1", "ada", "agent")
    for being in ("ada/agent", "bo/agent"):
        assert "memories" not in await company.call(being, "recall", query="staging server reset")
        assert (await company.call(being, "search_memory", query="staging"))["hits"] == []
        assert (await company.call(being, "recall_memory", ids=["s1"]))["missing"] == ["s1"]


async def test_own_and_shared_stand_in_one_list_and_own_ones_are_boosted(company: Company) -> None:
    await company.call("ada/agent", "share", text="The staging server is reset on Mondays")
    await company.call("bo/agent", "store", text="The staging server is reset on Fridays")
    found = (await company.call("bo/agent", "search_shared", query="staging server reset"))["memories"]
    assert [one["id"] for one in found] == ["m1", "s1"]
    assert found[0]["score"] - found[1]["score"] == pytest.approx(0.1, abs=0.02)
    shared = ["The staging server is reset on Mondays"]
    assert await company.texts("ada/agent", query="staging server reset") == shared
    assert await company.texts(query="staging server reset", scope="shared") == shared


async def test_policies_stand_in_every_prompt_and_at_the_start(company: Company) -> None:
    await company.call("hana/human", "share", text="No commits to main", kind="policy")
    for being in ("ada/agent", "bo/senior"):
        context = await company.call(being, "context", message="What is for lunch?", token_limit=60)
        assert context["system_prompt"].startswith("# Policies of the organisation\n- No commits to main")
        assert "No commits to main" in (await company.call(being, "recall"))["start"]


async def test_a_superseded_policy_leaves_its_history_and_as_of_shows_it(company: Company) -> None:
    await company.call("hana/human", "share", text="PRs need two approvals", kind="policy", when="2026-01-01")
    new = {"text": "PRs need one approval", "kind": "policy", "when": "2026-03-01", "supersedes": "s1"}
    answer = await company.call("hana/human", "share", **new)
    assert answer["superseded"]["id"] == "s1"
    assert await company.texts(kinds=["policy"]) == ["PRs need one approval"]
    assert await company.texts(kinds=["policy"], as_of="2026-02") == ["PRs need two approvals"]
    assert await company.texts(query="approvals", as_of="2026-02") == ["PRs need two approvals"]
    then = datetime(2026, 2, 1, tzinfo=UTC)
    known = await company.memory.ledger.knowledge.knowledge_of_kinds(["policy"], as_of=then, limit=1)
    assert [one.short_id for one in known] == ["s1"], "newer ones do not take its place"
    versions = (await company.call("bo/agent", "search_shared", id="s1"))["memories"]
    assert [(one["id"], one["author"], one.get("status")) for one in versions] == [
        ("s1", "hana", "superseded"),
        ("s2", "hana", None),
    ]
    await company.call("hana/human", "retract", id="s2", undo=True)
    assert "PRs need two approvals" in await company.texts(kinds=["policy"])


async def test_every_write_is_in_the_audit_with_its_author(company: Company) -> None:
    await company.call("ada/agent", "share", text="The lamp is broken", key="k")
    await company.call("ada/agent", "share", text="The lamp is fixed", supersedes="s1")
    await company.call("ada/agent", "retract", id="s2", reason="It never was")
    await company.call("bo/senior", "retract", id="s1", erase=True)
    entries = await company.memory.ledger.audit.audit_entries(AuditQuery(being_id=ORGANISATION_BEING_ID))
    assert [(one.event, one.author, one.role) for one in entries] == [
        ("store", "ada", "agent"),
        ("store", "ada", "agent"),
        ("supersede", "ada", "agent"),
        ("retract", "ada", "agent"),
        ("forget", "bo", "senior"),
    ]
    assert entries[:4] == [
        one
        for one in await company.memory.ledger.audit.audit_entries(AuditQuery(being_id=BeingId("ada")))
        if one.author
    ]


REFUSALS: list[tuple[str, str, dict[str, Any], str]] = [
    ("ada/agent", "share", {"text": "Never", "kind": "policy"}, "A policy is written by human"),
    ("ada/c_suite", "share", {"text": "Never", "kind": "policy"}, "A policy is written by human"),
    ("ada/agent", "share", {"text": "Never", "kind": "decision"}, "c_suite, human, lead, senior"),
    ("ada/agent", "share", {"text": "Never", "supersedes": "s2"}, "A decision is written by"),
    ("ada/senior", "share", {"text": "Never", "supersedes": "s1"}, "A policy is written by human"),
    ("ada/human", "share", {"text": "Never", "kind": "decision", "supersedes": "s1"}, "only another policy"),
    ("ada/agent", "share", {"text": "Never", "supersedes": "s3"}, "share needs .* change what others have shared"),
    ("ada/agent", "retract", {"id": "s3", "reason": "Wrong"}, "change what others have shared"),
    ("ada/senior", "retract", {"id": "s1", "reason": "Wrong"}, "A policy is written by human"),
    ("ada/senior", "retract", {"id": "s1", "undo": True}, "A policy is written by human"),
    ("bo/agent", "retract", {"id": "s3", "undo": True}, "change what others have shared"),
    ("bo/agent", "retract", {"id": "s3", "erase": True}, "permission to erase"),
    ("ada/agent", "share", {"memory": "s1"}, "no memory 's1' of yours"),
    ("ada/agent", "share", {"memory": "m1"}, "no memory"),
    ("ada/senior", "retract", {"id": "m1", "reason": "Wrong"}, "Nothing that is shared has the id 'm1'"),
    ("ada/senior", "retract", {"id": "s2"}, "one of reason, undo and erase"),
    ("ada/human", "share", {"text": "x" * 501, "kind": "policy"}, "at most 500 characters"),
    ("ada/senior", "update_memory", {"id": "s1", "text": "Never"}, "no memory 's1'"),
    ("ada/senior", "store", {"text": "Never", "supersedes": "s1"}, "no memory 's1'"),
]


@pytest.mark.parametrize(("who", "tool", "arguments", "reason"), REFUSALS)
async def test_what_a_role_may_not_do_is_refused_with_the_reason(
    company: Company, who: str, tool: str, arguments: dict[str, Any], reason: str
) -> None:
    await company.call("hana/human", "share", text="No commits to main", kind="policy")
    await company.call("cyd/senior", "share", text="We use JWT", kind="decision")
    await company.call("bo/agent", "share", text="The staging server is slow")
    await company.call("bo/agent", "store", text="I am slow")
    before = await company.texts(limit=50)
    with pytest.raises(AssertionError, match=reason):
        await company.call(who, tool, **arguments)
    assert await company.texts(limit=50) == before


async def test_there_are_never_more_policies_than_every_prompt_holds(company: Company) -> None:
    for number in range(10):
        await company.call("hana/human", "share", text=f"Rule {number}", kind="policy")
    with pytest.raises(AssertionError, match="There are 10 policies, which is the most"):
        await company.call("hana/human", "share", text="Rule 10", kind="policy")
    await company.call("hana/human", "share", text="Rule nine", kind="policy", supersedes="s10")
    await company.call("hana/human", "retract", id="s1", reason="Nobody keeps it")
    await company.call("hana/human", "share", text="Rule 10", kind="policy")
    assert len(await company.texts(kinds=["policy"])) == 10
    with pytest.raises(AssertionError, match=r"There are 10 policies.* Nothing was taken back"):
        await company.call("hana/human", "retract", id="s1", undo=True)
    await company.call("hana/human", "retract", id="s11", undo=True)
    assert len(await company.texts(kinds=["policy"])) == 10, "one comes for one that goes"


async def test_shared_twice_is_shared_once_and_keys_are_each_authors_own(company: Company) -> None:
    first = await company.call("ada/agent", "share", text="The lamp is broken", key="k")
    assert (await company.call("ada/agent", "share", text="The lamp is broken", key="k"))["status"] == "known"
    known = await company.call("bo/agent", "share", text="The lamp is broken")
    assert (known["id"], known["notice"]) == (first["id"], "Everybody knows this already.")
    other = await company.call("bo/agent", "share", text="The door is open", key="k")
    assert (other["id"], other["status"]) == ("s2", "shared")
    with pytest.raises(AssertionError, match="used before for a different text"):
        await company.call("ada/agent", "share", text="The door is shut", key="k")


async def test_a_memory_is_shared_without_what_was_felt_or_said(company: Company) -> None:
    await company.call(
        "ada/agent", "store", text="The deploy failed", feeling="I was afraid", dialogue=["Oh no"], lesson="Look twice"
    )
    await company.call("ada/agent", "share", memory="m1")
    [shared] = await company.memory.ledger.knowledge.knowledge_of_kinds(["knowledge"], limit=9)
    assert (shared.scene.action, shared.lesson, shared.feeling, shared.scene.dialogue) == (
        "The deploy failed",
        "Look twice",
        "",
        (),
    )


async def test_no_connection_can_be_the_organisations_and_no_patrol_changes_it(company: Company) -> None:
    assert not is_connectable_being(ORGANISATION_BEING_ID)
    assert valid_being_id_or_none(ORGANISATION_BEING_ID) is None
    with pytest.raises(PermissionError):
        Caller(ORGANISATION_BEING_ID)
    with pytest.raises(InvalidInput, match="kept for what all beings share"):
        read_settings({"MADELEINE_BEING": ORGANISATION_BEING_ID})
    await company.call("ada/agent", "share", text="The lamp is broken")
    await company.call("ada/agent", "store", text="The lamp is green")
    assert [one.being_id for one in await company.memory.ledger.patrols.activity_of_each_being_since_last_patrol()] == [
        "ada"
    ]


async def test_an_import_of_shared_knowledge_needs_a_role_that_may_write_policies(
    company: Company, tmp_path: Path
) -> None:
    await company.call("hana/human", "share", text="No commits to main", kind="policy")
    lines = exported(tmp_path / "memory.db")
    async with open_memory_store(Settings(data_dir=tmp_path / "b"), embedder=WordEmbedder(), background=False) as other:
        load, company = other.import_export, Company(other, tmp_path)
        with pytest.raises(NotPermitted):
            await load("e", iter(lines), client="test", role="senior")
        with pytest.raises(InvalidInput, match="what all beings share"):
            await load("e", iter(lines), client="test", role="human", being=ORGANISATION_BEING_ID)
        assert await company.texts() == []
        report = await load("e", iter(lines), client="test", role="human")
        [fact] = (await company.call("bo/agent", "search_shared"))["memories"]
        assert (fact["text"], fact["kind"], fact["author"]) == ("No commits to main", "policy", "hana")
        with pytest.raises(NotPermitted):
            await load.undo(report.id, client="test", role="senior")
        await load.undo(report.id, client="test", role="human")
        assert await company.texts() == []
