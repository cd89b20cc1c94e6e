"""`profile`: who the being is and whom it deals with (spec P5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, assert_never

from pydantic import AfterValidator, BeforeValidator, Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Note
from madeleine.memory.profile import ProfileEntry, ProfileKind
from madeleine.tools.arguments import Arguments, Short, not_blank, storable
from madeleine.tools.replies import moment, present
from madeleine.tools.tool import Call, Tool, answer_schema

VALUE_CHARS = 8_000
"""Of an entry, which is part of every prompt."""

Value = Annotated[
    str, BeforeValidator(storable), AfterValidator(not_blank), Field(min_length=1, max_length=VALUE_CHARS)
]
Change = Literal["set", "enable", "disable", "done", "remove"]
Kind = Literal["soul", "partner_rules", "preferences", "relationships", "tools", "map", "knowledge", "notes"]


class ProfileArguments(Arguments):
    action: Annotated[
        Literal["show", "set", "enable", "disable", "done", "remove"],
        Field(description="enable and disable work on partner_rules and preferences; done closes a note."),
    ] = "show"
    kind: Annotated[Kind | None, Field(description="All kinds if left out.")] = None
    name: Annotated[
        Short | None,
        Field(
            description="Of the entry. The soul has personality, voice, values, backstory, inner_world, examples. For "
            "a note: its type (todo, reminder) with set, its id with done and remove."
        ),
    ] = None
    value: Annotated[Value | None, Field(description="Only with set.")] = None


async def run(call: Call, arguments: ProfileArguments) -> dict[str, Any]:
    action, kind, name, value = arguments.action, arguments.kind, arguments.name, arguments.value
    if action == "show":
        if value is not None:
            raise InvalidInput("Nothing was done. value: leave it out to show something, or use the action set.")
        content = await show(call, kind, name)
        call.use.audit(call.scope, "recall", tool="profile", ids=shown_ids(content))
        return content
    if kind is None or name is None:
        raise InvalidInput(f"Nothing was done. kind and name are both required to {action} an entry.")
    if (action == "set") != (value is not None):
        raise InvalidInput("Nothing was done. value is required with set, and only allowed there.")
    if kind == "notes":
        return await change_note(call, action, name, value or "")
    return await change_entry(call, action, kind, name, value or "")


async def show(call: Call, kind: Kind | None, name: str | None) -> dict[str, Any]:
    """Entries and open notes. The caller audits them."""
    content: dict[str, Any] = {}
    if kind != "notes":
        entries = await call.use.profile.read(call.scope, kind, name or "")
        content["entries"] = [entry_as_json(entry) for entry in entries]
    if kind in (None, "notes"):
        notes = await call.use.profile.notes(call.scope)
        content["notes"] = [note_as_json(note) for note in notes if name is None or name in (note.type, note.id)]
    return content


async def change_entry(call: Call, action: Change, kind: ProfileKind, name: str, value: str) -> dict[str, Any]:
    profile = call.use.profile
    match action:
        case "set":
            written = await profile.write(call.scope, kind, name, value)
            return {"entries": [entry_as_json(written.entry)]} | present({"redacted": dict(written.redacted)})
        case "enable" | "disable":
            return {"entries": [entry_as_json(await profile.enable(call.scope, kind, name, action == "enable"))]}
        case "remove":
            return {"removed": (await profile.remove(call.scope, kind, name)).id}
        case "done":
            raise InvalidInput("Nothing was done. done is for notes; use remove for other entries.")
        case _:
            assert_never(action)


async def change_note(call: Call, action: Change, name: str, value: str) -> dict[str, Any]:
    profile = call.use.profile
    match action:
        case "set":
            written = await profile.note(call.scope, name, value)
            return {"notes": [note_as_json(written.note)]} | present({"redacted": dict(written.redacted)})
        case "done":
            await profile.close_note(call.scope, name)
            return {"done": name}
        case "remove":
            await profile.close_note(call.scope, name, remove=True)
            return {"removed": name}
        case "enable" | "disable":
            raise InvalidInput(
                f"Nothing was done. {action} is for rules and preferences; use done or remove for notes."
            )
        case _:
            assert_never(action)


def shown_ids(content: Mapping[str, Any]) -> list[str]:
    """The ids in an answer, for the audit: of entries, their memories, and notes (spec O4)."""
    items = [*content.get("entries", []), *content.get("notes", [])]
    return [str(item[key]) for item in items for key in ("id", "memory_id") if key in item]


def entry_as_json(entry: ProfileEntry) -> dict[str, Any]:
    switchable = entry.kind in ("partner_rules", "preferences")
    return {"id": entry.id, "kind": entry.kind, "name": entry.name, "value": entry.value} | present(
        {
            "enabled": entry.enabled if switchable else None,
            "memory_id": entry.memory_id,
            "updated_at": moment(entry.updated_at),
        }
    )


def note_as_json(note: Note) -> dict[str, Any]:
    return {"id": note.id, "type": note.type, "content": note.content, "created_at": moment(note.created_at)}


TOOL = Tool(
    name="profile",
    description=(
        "Show and edit who the owner of this memory is and whom it deals with: soul, partner_rules, preferences, "
        "relationships, tools, map, knowledge, and open notes. It is part of every context. set replaces the entry of "
        "that name. A preference is also a memory: it is recalled, and removing it erases that memory. For what "
        "happened use store."
    ),
    arguments=ProfileArguments,
    answers=answer_schema("", array="entries notes", string="removed done", object="redacted"),
    run=run,
    destructive=True,
    listed=False,
)
