"""`profile`: who the being is and whom it deals with (spec P5)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Note
from madeleine.memory.profile import ProfileEntry, ProfileKind
from madeleine.tools.arguments import ShortText, Text, ToolArguments
from madeleine.tools.replies import fields_of, iso_time, nonempty
from madeleine.tools.tool import Call, answer_schema, tool

MAX_PROFILE_VALUE_CHARS = 8_000
"""Of an entry, which is part of every prompt."""

ProfileAction = Literal["show", "set", "enable", "disable", "done", "remove"]
ShownKind = Literal["soul", "partner_rules", "preferences", "relationships", "tools", "map", "knowledge", "notes"]


class ProfileArguments(ToolArguments):
    action: Annotated[
        ProfileAction,
        Field(description="enable and disable work on partner_rules and preferences; done closes a note."),
    ] = "show"
    kind: Annotated[ShownKind | None, Field(description="All kinds if left out.")] = None
    name: Annotated[
        ShortText,
        Field(
            description="Of the entry. The soul has personality, voice, values, backstory, inner_world, examples. For "
            "a note: its type (todo, reminder) with set, its id with done and remove."
        ),
    ] = ""
    value: Annotated[Text, Field(max_length=MAX_PROFILE_VALUE_CHARS, description="Only with set.")] = ""


@tool(
    ProfileArguments,
    answer_schema("", array="entries notes", string="removed done", object="redacted"),
    destructive=True,
    listed=False,
)
async def profile(call: Call, arguments: ProfileArguments) -> dict[str, Any]:
    """Show and edit who the owner of this memory is and whom it deals with: soul, partner_rules, preferences,
    relationships, tools, map, knowledge, and open notes. It is part of every context. set replaces the entry of that
    name. A preference is also a memory: it is recalled, and removing it erases that memory. For what happened use
    store."""
    action, kind, name, value = arguments.action, arguments.kind, arguments.name, arguments.value
    if action == "show":
        if value:
            raise InvalidInput("Nothing was done. value: leave it out to show something, or use the action set.")
        return await show_profile(call, kind, name, audited_as="profile")
    if not kind or not name:
        raise InvalidInput(f"Nothing was done. kind and name are both required to {action} an entry.")
    if (action == "set") != bool(value):
        raise InvalidInput("Nothing was done. value is required with set, and only allowed there.")
    if kind == "notes":
        return await change_inbox_note(call, action, name, value)
    return await change_entry(call, action, kind, name, value)


async def show_profile(call: Call, kind: ShownKind | None = None, name: str = "", *, audited_as: str) -> dict[str, Any]:
    """Entries and open notes. Their ids, and those of their memories, are audited (spec O4)."""
    content: dict[str, Any] = {}
    if kind != "notes":
        entries = await call.use.profile.read(call.scope, kind, name)
        content["entries"] = [entry_as_json(entry) for entry in entries]
    if kind in (None, "notes"):
        notes = await call.use.profile.notes(call.scope)
        content["notes"] = [note_as_json(note) for note in notes if not name or name in (note.type, note.id)]
    shown = [item for items in content.values() for item in items]
    call.audit_recall(audited_as, [item[key] for item in shown for key in ("id", "memory_id") if key in item])
    return content


async def change_entry(call: Call, action: ProfileAction, kind: ProfileKind, name: str, value: str) -> dict[str, Any]:
    match action:
        case "set":
            written = await call.use.profile.write(call.scope, kind, name, value)
            return {"entries": [entry_as_json(written.entry)]} | nonempty(redacted=dict(written.redacted))
        case "enable" | "disable":
            return {
                "entries": [entry_as_json(await call.use.profile.enable(call.scope, kind, name, action == "enable"))]
            }
        case "remove":
            return {"removed": (await call.use.profile.remove(call.scope, kind, name)).id}
        case _:
            raise InvalidInput("Nothing was done. done is for notes; use remove for other entries.")


async def change_inbox_note(call: Call, action: ProfileAction, name: str, value: str) -> dict[str, Any]:
    match action:
        case "set":
            written = await call.use.profile.note(call.scope, name, value)
            return {"notes": [note_as_json(written.note)]} | nonempty(redacted=dict(written.redacted))
        case "done":
            await call.use.profile.close_note(call.scope, name)
            return {"done": name}
        case "remove":
            await call.use.profile.close_note(call.scope, name, remove=True)
            return {"removed": name}
        case _:
            raise InvalidInput(
                f"Nothing was done. {action} is for rules and preferences; use done or remove for notes."
            )


def entry_as_json(entry: ProfileEntry) -> dict[str, Any]:
    switchable = entry.kind in ("partner_rules", "preferences")
    return fields_of(entry, "id kind name value") | nonempty(
        enabled=entry.enabled if switchable else None, memory_id=entry.memory_id, updated_at=iso_time(entry.updated_at)
    )


def note_as_json(note: Note) -> dict[str, Any]:
    return fields_of(note, "id type content") | {"created_at": iso_time(note.created_at)}
