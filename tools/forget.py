"""`forget`: erase memories permanently and everywhere (ruling 11)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.model import MemoryId
from madeleine.tools.arguments import Arguments, Short
from madeleine.tools.replies import present
from madeleine.tools.tool import Call, Tool, answer_schema

SCRUB_PENDING = (
    "Erased from the memory and from every answer. Overwriting the remaining bytes on disk continues in the background."
)


class ForgetArguments(Arguments):
    memory_ids: Annotated[list[Short], Field(min_length=1, max_length=50)]


async def run(call: Call, arguments: ForgetArguments) -> dict[str, Any]:
    result = await call.use.forget(call.scope, [MemoryId(id_) for id_ in arguments.memory_ids])
    return {"erased": list(result.erased)} | present(
        {
            "not_found": list(result.missing),
            "related": list(result.related),
            "messages": result.messages or None,
            "diary_entries": result.diary_entries or None,
            "notice": "" if result.bytes_gone else SCRUB_PENDING,
        }
    )


TOOL = Tool(
    name="forget",
    description=(
        "Erase memories with the messages they came from, or single messages by id, permanently and from disk too. "
        "Only on request: to correct use update_memory; unused memories fade by themselves. related: memories linked "
        "to the erased ones, which stay and may say the same."
    ),
    arguments=ForgetArguments,
    answers=answer_schema("erased", array="erased not_found related"),
    run=run,
    destructive=True,
    idempotent=True,
)
