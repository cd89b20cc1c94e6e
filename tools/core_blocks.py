"""`core_memory` and `edit_core_memory`: the texts that an agent keeps in its prompt and edits itself (spec O12)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.core_blocks.values import (
    DEFAULT_BLOCK_CHARS,
    MAX_BLOCK_CHARS,
    MAX_CORE_BLOCK_NAME_CHARS,
    CoreBlock,
    CoreBlockEditKind,
    VersionedCoreBlockEdit,
)
from madeleine.memory.errors import InvalidInput
from madeleine.memory.permissions import Permission
from madeleine.tools.arguments import NonEmptyText, ShortText, ToolArguments
from madeleine.tools.replies import datetime_as_iso, without_empty_fields
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function

CoreBlockText = Annotated[NonEmptyText, Field(max_length=MAX_BLOCK_CHARS)]


class CoreMemoryArguments(ToolArguments):
    name: Annotated[ShortText, Field(description="Only this block, with all its versions.")] = ""


@tool_from_function(
    CoreMemoryArguments,
    object_schema("blocks", array="blocks"),
    name="core_memory",
    read_only=True,
    idempotent=True,
    listed=False,
    permission="read",
)
async def read_core_memory(call: ToolCallContext, arguments: CoreMemoryArguments) -> dict[str, Any]:
    """Read your core memory: named blocks that stand in every prompt, such as who you are, whom you serve, what you are
    at. Each has a version, which edit_core_memory asks for. What is not here, recall and search_memory find."""
    if arguments.name.strip():
        blocks = await call.use_cases.core_blocks.versions(call.scope, arguments.name)
    else:
        blocks = await call.use_cases.core_blocks.blocks(call.scope)
    call.audit_recall("core_memory", [block.id for block in blocks])
    return {"blocks": [core_block_as_json(block) for block in blocks]}


class EditCoreMemoryArguments(ToolArguments):
    name: Annotated[ShortText, Field(max_length=MAX_CORE_BLOCK_NAME_CHARS, description="As human, persona, task.")]
    version: Annotated[int, Field(ge=0, le=1_000_000, description="The one you have read; 0 for a new block.")] = 0
    text: Annotated[CoreBlockText, Field(description="The whole block, or what is put in place of old, or added.")] = ""
    old: Annotated[
        CoreBlockText, Field(description="A part that stands there once: text takes its place, or nothing.")
    ] = ""
    append: Annotated[bool, Field(description="Add text as new lines.")] = False
    description: Annotated[ShortText | None, Field(description="What the block is for.")] = None
    max_chars: Annotated[
        int | None, Field(ge=1, le=MAX_BLOCK_CHARS, description=f"A new block has room for {DEFAULT_BLOCK_CHARS}.")
    ] = None
    erase: Annotated[bool, Field(description="For good, with all versions: only on request.")] = False


def _permission_for_arguments(arguments: EditCoreMemoryArguments) -> Permission:
    return "erase" if arguments.erase else "write"


@tool_from_function(
    EditCoreMemoryArguments,
    object_schema("", object="block redacted", string="erased notice"),
    destructive=True,
    listed=False,
    permission_of=_permission_for_arguments,
)
async def edit_core_memory(call: ToolCallContext, arguments: EditCoreMemoryArguments) -> dict[str, Any]:
    """Edit a block of your core memory: write it whole, replace a part, or append. Name the version that you have read:
    if somebody has edited the block since, nothing is changed and you get the difference. Earlier versions are kept.
    Keep blocks short; what you need only at times, store."""
    if not arguments.name.strip():
        raise InvalidInput("Nothing was changed. name: of the block.")
    if arguments.erase:
        if arguments.text or arguments.old or arguments.append:
            raise InvalidInput("Nothing was changed. erase goes with the name alone.")
        await call.use_cases.core_blocks.erase(call.scope, arguments.name)
        return {"erased": arguments.name}
    if arguments.old and arguments.append:
        raise InvalidInput("Nothing was changed. Give old or append, not both.")
    is_write = bool(arguments.text) and not (arguments.old or arguments.append)
    kind: CoreBlockEditKind = (
        "replace" if arguments.old else "append" if arguments.append else "write" if is_write else "keep"
    )
    if not (arguments.text or arguments.old) and (arguments.description, arguments.max_chars) == (None, None):
        raise InvalidInput("Nothing was changed. Give text; or old without text, to take that part out.")
    edit = arguments.to_dataclass(VersionedCoreBlockEdit, kind=kind)
    edited = await call.use_cases.core_blocks.edit(call.scope, edit)
    return {"block": core_block_as_json(edited.block)} | without_empty_fields(redacted=dict(edited.redacted))


def core_block_as_json(block: CoreBlock) -> dict[str, Any]:
    shown = {"name": block.name, "version": block.version, "text": block.text, "max_chars": block.max_chars}
    return shown | without_empty_fields(
        description=block.description, written=datetime_as_iso(block.written_at), client=block.client
    )
