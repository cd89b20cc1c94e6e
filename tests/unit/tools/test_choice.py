"""Which tools a connection gets."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, cast

import pytest

from madeleine.memory.errors import InvalidInput
from madeleine.tools.tool import Tool, ToolCallContext, ToolUseCases
from madeleine.tools.toolset import TOOL_NAMES_BY_TOOLSET, Toolset, choose_tools, make_all_tools
from tests.doubles import ADA
from tests.rows import for_each_row

ALL = make_all_tools(Random(1))
LISTED = [tool for tool in ALL if tool.listed]


def names(tools: list[Tool]) -> list[str]:
    return [tool.name for tool in tools]


def test_without_a_selection_all_tools_are_served() -> None:
    assert choose_tools(ALL) == ALL


def test_a_tool_that_programs_call_is_listed_where_it_is_asked_for() -> None:
    unlisted = replace(ALL[0], listed=False)
    tools = [unlisted, *ALL[1:]]
    for wish, listed in (({}, False), ({"exclude": ["store"]}, False), ({"toolsets": ["memory"]}, True),
                         ({"toolsets": ["all"]}, True), ({"names": ["recall"]}, True)):  # fmt: skip
        result = {tool.name: tool for tool in choose_tools(tools, **cast(Any, wish))}
        assert result["recall"].listed is listed
    assert [tool.name for tool in Toolset(tools, max_text_chars=100).list_tools()] == [
        tool.name for tool in ALL[1:] if tool.listed
    ]
    assert "recall" in Toolset(tools, max_text_chars=100)


def test_every_tool_is_in_one_toolset() -> None:
    assert sorted(name for toolset in TOOL_NAMES_BY_TOOLSET.values() for name in toolset) == sorted(names(ALL))


@for_each_row(
    ("wish", "left"),
    [
        ({"toolsets": ["patrol"]}, ["run_patrol"]),
        ({"toolsets": ["memory", "patrol"]}, names([tool for tool in ALL if tool.listed])),
        ({"toolsets": ["all"]}, names(ALL)),
        ({"names": ["store", "recall"]}, ["recall", "store"]),
        ({"toolsets": ["patrol"], "names": ["recall"]}, ["recall", "run_patrol"]),
        (
            {"toolsets": ["all"], "exclude": ["forget", "update_memory", "run_patrol", "observe", "ingest", "context"]},
            ["recall", "recall_memory", "search_memory", "store", "profile", *names(ALL)[11:]],
        ),
        ({"toolsets": ["conversation"]}, ["observe", "ingest"]),
        ({"toolsets": ["context"]}, ["context", "profile"]),
        ({"names": ["store", "forget"], "exclude": ["forget"]}, ["store"]),
        ({"read_only": True}, [
            "recall", "recall_memory", "search_memory", "context", "search_shared", "related", "core_memory",
        ]),
        ({"read_only": True, "names": ["recall", "forget"]}, ["recall"]),
    ],
)  # fmt: skip
def test_a_selection_keeps_the_order_of_the_tools(wish: dict[str, Any], left: list[str]) -> None:
    assert names(choose_tools(ALL, **wish)) == left


@for_each_row(
    ("wish", "named", "known"),
    [
        (
            {"toolsets": ["memories"]},
            "toolset 'memories'",
            "all, archive, context, conversation, graph, lessons, memory, organisation, patrol, self_editing",
        ),
        ({"names": ["remember"]}, "tool 'remember'", "recall, recall_memory"),
        ({"exclude": ["Store"]}, "tool 'Store'", "store, update_memory"),
        ({"toolsets": ["\ud800" * 1000]}, "toolset", "organisation, patrol"),
    ],
)
def test_an_unknown_name_is_refused_and_the_known_ones_are_told(wish: dict[str, Any], named: str, known: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        choose_tools(ALL, **wish)
    assert named in str(caught.value)
    assert known in str(caught.value)
    assert str(caught.value).encode()


@pytest.mark.parametrize("wish", [{"exclude": names(ALL)}, {"names": ["store"], "read_only": True}])
def test_a_selection_that_leaves_nothing_is_refused(wish: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="The selection leaves no tools"):
        choose_tools(ALL, **wish)


async def test_a_read_only_tool_counts_nothing_and_says_so_in_its_hints() -> None:
    seen: list[bool] = []

    async def run(call: ToolCallContext, arguments: Any) -> dict[str, Any]:
        seen.append(call.scope.count_activations)
        return {}

    recall = replace(ALL[0], run=run)
    [quiet] = choose_tools([recall], read_only=True)
    call = ToolCallContext(ADA, cast(ToolUseCases, None))
    await recall.run(call, None)
    await quiet.run(call, None)
    assert seen == [True, False]
    assert (recall.read_only, quiet.read_only, quiet.destructive, quiet.idempotent) == (False, True, False, True)
