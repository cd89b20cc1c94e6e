"""`forget`: erase memories for good, everywhere (ruling 11)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.model import MemoryId
from madeleine.tools.arguments import Arguments, Short
from madeleine.tools.replies import present
from madeleine.tools.tool import TEXTS, Call, Tool, answer_schema

NOT_YET = (
    "Erased from memory and out of every answer; the last bytes on disk are still being overwritten, which goes on by "
    "itself."
)


class ForgetArguments(Arguments):
    memory_ids: Annotated[list[Short], Field(min_length=1, max_length=50)]


async def run(call: Call, arguments: ForgetArguments) -> dict[str, Any]:
    found = await call.use.forget(call.scope, [MemoryId(id_) for id_ in arguments.memory_ids])
    rest = {
        "not_found": list(found.missing),
        "related": list(found.related),
        "messages": found.messages or None,
        "diary_entries": found.diary_entries or None,
        "notice": "" if found.bytes_gone else NOT_YET,
    }
    return {"erased": list(found.erased)} | present(rest)


TOOL = Tool(
    name="forget",
    description=(
        "Erase memories and the messages they came from, or messages by id, for good, from the disk too. Only when "
        "asked to: to correct use update_memory; the old fades by itself. related: memories tied to what is gone, "
        "which stay and may tell the same."
    ),
    arguments=ForgetArguments,
    answers=answer_schema(("erased",), erased=TEXTS, not_found=TEXTS, related=TEXTS),
    run=run,
    read_only=False,
    destructive=True,
    idempotent=True,
    shows=False,
)
