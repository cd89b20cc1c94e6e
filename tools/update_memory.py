"""`update_memory`: correct what is remembered; what was before is kept as history."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import MemoryChanges, MemoryId
from madeleine.tools.arguments import Arguments, LongText, Share, Short
from madeleine.tools.tool import TEXT, TEXTS, Call, Tool, answer_schema


class UpdateMemoryArguments(Arguments):
    memory_id: Short
    text: Annotated[LongText | None, Field(description="As it should read, whole.")] = None
    importance: Share | None = None
    themes: Annotated[list[Short], Field(max_length=20)] | None = None
    pinned: bool | None = None


async def run(call: Call, arguments: UpdateMemoryArguments) -> dict[str, Any]:
    changes = MemoryChanges(
        text=None if arguments.text is None else arguments.text.strip(),
        importance=arguments.importance,
        themes=None if arguments.themes is None else tuple(dict.fromkeys(arguments.themes)),
        pinned=arguments.pinned,
    )
    if changes == MemoryChanges():
        raise InvalidInput("Nothing to change was given: say text, importance, themes or pinned.")
    updated = await call.use.update(call.scope, MemoryId(arguments.memory_id), changes)
    answer: dict[str, Any] = {"id": updated.memory.id, "changed": changed_names(updated.changes)}
    if updated.redacted:
        answer["redacted"] = dict(updated.redacted)
    if updated.unembedded:
        answer["notice"] = f"Changed; found by its words only until it can be embedded. {updated.unembedded}"
    return answer


def changed_names(changes: MemoryChanges) -> list[str]:
    return [name for name in ("text", "importance", "themes", "pinned") if getattr(changes, name) is not None]


TOOL = Tool(
    name="update_memory",
    description=(
        "Correct a memory; what is left out stays. The new text is recalled at once, the earlier one only shown by "
        "recall_memory, as history. For something new use store, to erase use forget."
    ),
    arguments=UpdateMemoryArguments,
    answers=answer_schema(("id", "changed"), id=TEXT, changed=TEXTS),
    run=run,
    read_only=False,
    destructive=False,
    idempotent=True,
    shows=False,
)
