"""The library has every argument of the tools it calls, and every key of their answers."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from madeleine import client, models
from madeleine.tools import context, forget, recall_memory, run_patrol, search_memory, store, update_memory
from madeleine.tools.recall import RecallArguments
from madeleine.tools.tool import Tool


@pytest.mark.parametrize(
    ("optional", "required", "arguments"),
    [
        (client.StoreArguments, {"text"}, store.TOOL.arguments),
        (client.RecallArguments, {"query"}, RecallArguments),
        (client.SearchArguments, {"query"}, search_memory.TOOL.arguments),
        (client.MemoriesArguments, {"memory_ids"}, recall_memory.TOOL.arguments),
        (client.UpdateArguments, {"memory_id"}, update_memory.TOOL.arguments),
        (client.PatrolArguments, set(), run_patrol.TOOL.arguments),
        (client.ContextArguments, set(), context.TOOL.arguments),
    ],
)
def test_every_argument_of_a_tool_can_be_given(optional: Any, required: set[str], arguments: type[BaseModel]) -> None:
    assert set(optional.__annotations__) | required == set(arguments.model_fields)


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        (store.TOOL, models.StoreResult),
        (search_memory.TOOL, models.SearchPage),
        (update_memory.TOOL, models.UpdateResult),
        (forget.TOOL, models.ForgetResult),
        (run_patrol.TOOL, models.PatrolReport),
        (context.TOOL, models.Context),
    ],
)
def test_every_key_of_an_answer_is_a_field(tool: Tool, answer: type[BaseModel]) -> None:
    assert set(tool.answers["properties"]) <= set(answer.model_fields)
