"""`update_memory`: correct a memory; earlier versions are kept as history."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import MemoryChanges, MemoryId
from madeleine.tools.arguments import Arguments, LongText, Share, Short, unique
from madeleine.tools.replies import not_embedded, notice, present
from madeleine.tools.tool import Call, Tool, answer_schema

CHANGEABLE = ("text", "importance", "themes", "pinned")


class UpdateMemoryArguments(Arguments):
    memory_id: Short
    text: Annotated[LongText | None, Field(description="The whole corrected text.")] = None
    importance: Share | None = None
    themes: Annotated[list[Short], Field(max_length=20)] | None = None
    pinned: bool | None = None


async def run(call: Call, arguments: UpdateMemoryArguments) -> dict[str, Any]:
    changes = MemoryChanges(
        text=None if arguments.text is None else arguments.text.strip(),
        importance=arguments.importance,
        themes=None if arguments.themes is None else unique(arguments.themes),
        pinned=arguments.pinned,
    )
    if changes == MemoryChanges():
        raise InvalidInput("Nothing to change. Give text, importance, themes or pinned.")
    updated = await call.use.update(call.scope, MemoryId(arguments.memory_id), changes)
    return {
        "id": updated.memory.id,
        "changed": [name for name in CHANGEABLE if getattr(updated.changes, name) is not None],
        **present({"redacted": dict(updated.redacted) or None}),
        **notice(not_embedded("Changed", updated.unembedded)),
    }


TOOL = Tool(
    name="update_memory",
    description=(
        "Correct a memory; what is left out stays. The new text is recalled at once; recall_memory shows earlier "
        "versions as history. For something new use store, to erase use forget."
    ),
    arguments=UpdateMemoryArguments,
    answers=answer_schema("id changed", string="id", array="changed"),
    run=run,
    idempotent=True,
)
