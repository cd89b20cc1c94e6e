"""The library has every argument of the tools it calls, and every key of their answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from madeleine import arguments as of_the_library
from madeleine import models
from madeleine.tools.context import build_context
from madeleine.tools.organisation import retract_shared_knowledge, search_shared, share_with_organisation
from madeleine.tools.reading import RecallArguments, read_whole_memories, search_memory
from madeleine.tools.run_patrol import run_patrol
from madeleine.tools.tool import Tool
from madeleine.tools.writing import forget, store_memories, update_memory
from tests.rows import for_each_row


@for_each_row(
    ("optional", "required", "arguments"),
    [
        (of_the_library.StoreArguments, {"text", "scenes"}, store_memories.arguments),
        (of_the_library.RecallArguments, {"query"}, RecallArguments),
        (of_the_library.SearchArguments, {"query"}, search_memory.arguments),
        (of_the_library.ClusterMemoriesArguments, {"ids"}, read_whole_memories.arguments),
        (of_the_library.UpdateArguments, {"id"}, update_memory.arguments),
        (of_the_library.PatrolArguments, set(), run_patrol.arguments),
        (of_the_library.ContextArguments, set(), build_context.arguments),
        (of_the_library.ShareArguments, {"text"}, share_with_organisation.arguments),
        (of_the_library.SearchSharedArguments, {"query"}, search_shared.arguments),
    ],
)
def test_every_argument_of_a_tool_can_be_given(optional: Any, required: set[str], arguments: type[BaseModel]) -> None:
    assert set(optional.__annotations__) | required == set(arguments.model_fields)


@for_each_row(
    ("tool", "answer"),
    [
        (store_memories, models.StoreResult),
        (search_memory, models.SearchPage),
        (update_memory, models.UpdateResult),
        (forget, models.ForgetResult),
        (run_patrol, models.PatrolReport),
        (build_context, models.PromptContext),
        (share_with_organisation, models.KnowledgeSharingResult),
        (search_shared, models.PageOfSharedMemories),
        (retract_shared_knowledge, models.RetractionResult),
    ],
)
def test_every_key_of_an_answer_is_a_field(tool: Tool, answer: type[BaseModel]) -> None:
    fields = set(answer.model_fields) | (
        set(models.StoreScenesResult.model_fields) if tool is store_memories else set()
    )
    assert set(tool.output_schema["properties"]) <= fields
