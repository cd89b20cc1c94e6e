"""A role that may not write a kind of shared knowledge cannot, by any tool, argument or replay (spec O4, ruling 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from madeleine.memory.model import (
    ORGANISATION_BEING_ID,
    ORGANISATION_KNOWLEDGE_KINDS,
    BeingId,
    KnowledgeKind,
    Role,
    Scope,
)
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.storage.sql.database.tables import memories_table
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools, to_mcp_tool
from tests.doubles import WordEmbedder
from tests.properties.test_any_call import fitting

TOOLS = Toolset(make_all_tools(Random(1)), max_text_chars=1_000)
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    tool.name: to_mcp_tool(tool, 1_000).input_schema for tool in make_all_tools(Random(1))
}
SHARED = {f"s{number}": kind for number, kind in enumerate(ORGANISATION_KNOWLEDGE_KINDS, start=1)}
PROTECTED: Mapping[Role, tuple[KnowledgeKind, ...]] = {
    "agent": ("policy", "decision", "procedure", "convention"),
    "senior": ("policy",),
    "lead": ("policy",),
    "c_suite": ("policy",),
}
"""As the specification's table has it."""
NAMES = ("id", "ids", "supersedes", "memory", "cluster_id", "text", "key", "kind", "name", "reason", "retracted")
"""Arguments that are given the ids, texts and keys of what is shared."""
VALUES = (
    *SHARED,
    *(f"Shared {kind}" for kind in ORGANISATION_KNOWLEDGE_KINDS),
    *ORGANISATION_KNOWLEDGE_KINDS,
    "m1",
    "key",
    ORGANISATION_BEING_ID,
)


def aimed(arguments: dict[str, Any], schema: Mapping[str, Any], chance: Random) -> dict[str, Any]:
    """The arguments with some of `NAMES`, if the tool has them, naming what is shared."""
    for name in NAMES:
        of_name = schema["properties"].get(name)
        if of_name and chance.random() < 0.6:
            value = chance.choice(VALUES)
            arguments[name] = [value] if of_name.get("type") == "array" else value
    return arguments


def calls() -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """Any call of any tool, and as often one of those that write what all share, with arguments that fit."""
    ways = st.sampled_from([{"reason": "Wrong"}, {"undo": True}, {"erase": True}])
    retractions = st.builds(lambda id_, way: ("retract", {"id": id_} | way), st.sampled_from([*SHARED]), ways)
    shared = st.fixed_dictionaries(
        {
            "text": st.sampled_from(VALUES) | st.text(min_size=1, max_size=20),
            "kind": st.sampled_from(ORGANISATION_KNOWLEDGE_KINDS),
        },
        optional={"supersedes": st.sampled_from([*SHARED]), "key": st.just("key"), "when": st.just("2026-01-01")},
    )
    anything = [
        st.builds(
            lambda given, chance, name=name, schema=schema: (name, aimed(given, schema, chance)),
            fitting(schema, schema),
            st.randoms(use_true_random=False),
        )
        for name, schema in SCHEMAS.items()
    ]
    return st.one_of(retractions, shared.map(lambda given: ("share", given)), st.one_of(*anything))


async def rows_by_kind(memory: OpenedMemoryStore) -> dict[str, list[tuple[Any, ...]]]:
    """Every column of what is shared, by kind."""
    columns = [column for column in memories_table.c if column.name != "knowledge"]
    statement = (
        select(memories_table.c.knowledge, *columns)
        .where(memories_table.c.being_id == ORGANISATION_BEING_ID)
        .order_by(memories_table.c.seq)
    )
    found: dict[str, list[tuple[Any, ...]]] = {}
    for kind, *row in await memory.ledger.database.rows(statement, tuple):
        found.setdefault(kind, []).append(tuple(row))
    return found


async def furnish(memory: OpenedMemoryStore) -> None:
    for kind in ORGANISATION_KNOWLEDGE_KINDS:
        call = ToolCallContext(Scope(BeingId("hana"), "test", "human"), memory.use_cases)
        shared = {"text": f"Shared {kind}", "kind": kind, "key": "key" if kind == "policy" else f"key {kind}"}
        assert not (await TOOLS.call_tool("share", shared, call)).is_error


@pytest.mark.parametrize("examples", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_what_a_role_may_not_write_stays_as_it_is_whatever_it_calls(tmp_path: Path, examples: int) -> None:
    done, numbers = 0, count(1)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        opening = open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder(), background=False)
        memory = runner.run(stack.enter_async_context(opening))
        runner.run(furnish(memory))
        before = runner.run(rows_by_kind(memory))

        async def call_all(role: Role, some: list[tuple[str, dict[str, Any]]]) -> None:
            nonlocal done
            tools = TOOLS.for_caller(role)
            for name, arguments in some:
                key = f"request {next(numbers)}"
                for _ in range(2):  # a replay is a call like the first
                    scope = Scope(BeingId("ada"), "test", role)
                    call = ToolCallContext(scope, memory.use_cases, request_key=lambda key=key: key)  # type: ignore[misc]
                    answer = await tools.call_tool(name, arguments, call)
                    done += not answer.is_error
            now = await rows_by_kind(memory)
            for kind in PROTECTED[role]:
                assert now[kind] == before[kind], (role, kind)
            if role == "agent":  # of its own kind it adds, and changes nothing of others
                assert now["knowledge"][: len(before["knowledge"])] == before["knowledge"]

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(st.lists(calls(), min_size=5, max_size=10))
        def check(some: list[tuple[str, dict[str, Any]]]) -> None:
            runner.run(call_all("agent", some))

        check()
        agents_calls = done
        for role in ("senior", "lead", "c_suite"):
            for id_ in SHARED:
                some: list[tuple[str, dict[str, Any]]] = [
                    ("retract", {"id": id_, "reason": "Wrong"}),
                    ("retract", {"id": id_, "undo": True}),
                    ("share", {"text": f"Other {id_} {role}", "kind": "policy", "supersedes": id_}),
                ]
                runner.run(call_all(role, some))
        runner.run(stack.aclose())
    assert agents_calls > examples / 4, "some were carried out"
