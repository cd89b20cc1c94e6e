"""`profile`: who the being is and whom it deals with (spec P5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import MemoryId, Note, short_id_of_non_memory
from madeleine.memory.permissions import Permission
from madeleine.memory.profile import ProfileEntry, ProfileKind
from madeleine.tools.arguments import NonEmptyText, ShortText, ToolArguments
from madeleine.tools.replies import datetime_as_iso, without_empty_fields
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function

MAX_PROFILE_VALUE_CHARS = 8_000
"""Of an entry, which is part of every prompt."""

ProfileAction = Literal["show", "set", "enable", "disable", "done", "remove"]
ProfileOrNoteKind = Literal[
    "soul", "partner_rules", "preferences", "relationships", "tools", "map", "knowledge", "notes"
]


class ProfileArguments(ToolArguments):
    action: Annotated[
        ProfileAction,
        Field(description="enable and disable work on partner_rules and preferences; done closes a note."),
    ] = "show"
    kind: Annotated[ProfileOrNoteKind | None, Field(description="All kinds if left out.")] = None
    name: Annotated[
        ShortText,
        Field(
            description="Of the entry. The soul has personality, voice, values, backstory, inner_world, examples. For "
            "a note: its type (todo, reminder) with set, its id with done and remove."
        ),
    ] = ""
    text: Annotated[NonEmptyText, Field(max_length=MAX_PROFILE_VALUE_CHARS, description="Only with set.")] = ""


def _permission_for_arguments(arguments: ProfileArguments) -> Permission:
    """Removing a preference erases its memory; whatever else is removed has no version either."""
    if arguments.action == "show":
        return "read"
    return "erase" if arguments.action == "remove" else "write"


@tool_from_function(
    ProfileArguments,
    object_schema("", array="entries notes", string="removed done", object="redacted"),
    name="profile",
    destructive=True,
    listed=False,
    permission="read",
    permission_of=_permission_for_arguments,
)
async def show_or_edit_profile(call: ToolCallContext, arguments: ProfileArguments) -> dict[str, Any]:
    """Show and edit who the owner of this memory is and whom it deals with: soul, partner_rules, preferences,
    relationships, tools, map, knowledge, and open notes. It is part of every context. set replaces the entry of that
    name. A preference is also a memory: it is recalled, and removing it erases that memory. For what happened use
    store."""
    action, kind, name, value = arguments.action, arguments.kind, arguments.name, arguments.text
    if action == "show":
        if value:
            raise InvalidInput("Nothing was done. text: leave it out to show something, or use the action set.")
        return await profile_and_open_notes_as_json(call, kind, name, audited_as="profile")
    if not kind or not name:
        raise InvalidInput(f"Nothing was done. kind and name are both required to {action} an entry.")
    if (action == "set") != bool(value):
        raise InvalidInput("Nothing was done. text is required with set, and only allowed there.")
    if kind == "notes":
        return await change_inbox_note(call, action, name, value)
    return await change_profile_entry(call, action, kind, name, value)


async def profile_and_open_notes_as_json(
    call: ToolCallContext, kind: ProfileOrNoteKind | None = None, name: str = "", *, audited_as: str
) -> dict[str, Any]:
    """Entries and open notes. Their ids, and those of their memories, are audited (spec O4)."""
    content: dict[str, Any] = {}
    shown: list[str] = []
    if kind != "notes":
        entries = await call.use_cases.profile.read(
            call.scope, kind, await _entry_name_with_full_memory_id(call, kind, name)
        )
        content["entries"] = await profile_entries_as_json(call, entries)
        shown += [id_ for entry in entries for id_ in (entry.audit_id, entry.memory_id) if id_]
    if kind in (None, "notes"):
        notes = await call.use_cases.profile.list_open_notes(call.scope)
        notes = [note for note in notes if not name or name in (note.type, note.id, short_id_of_non_memory(note.id))]
        content["notes"] = [note_as_json(note) for note in notes]
        shown += [note.id for note in notes]
    call.audit_recall(audited_as, shown)
    return content


async def _entry_name_with_full_memory_id(call: ToolCallContext, kind: str | None, name: str) -> str:
    """A learnt preference has the id of its memory as its name."""
    return (
        (await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, [name]))[name]
        if name and kind in (None, "preferences")
        else name
    )


async def change_profile_entry(
    call: ToolCallContext, action: ProfileAction, kind: ProfileKind, name: str, value: str
) -> dict[str, Any]:
    name = await _entry_name_with_full_memory_id(call, kind, name)
    match action:
        case "set":
            written = await call.use_cases.profile.write(call.scope, kind, name, value)
            return {"entries": await profile_entries_as_json(call, [written.entry])} | without_empty_fields(
                redacted=dict(written.redacted)
            )
        case "enable" | "disable":
            entry = await call.use_cases.profile.set_preference_enabled(call.scope, kind, name, action == "enable")
            return {"entries": await profile_entries_as_json(call, [entry])}
        case "remove":
            return {"removed": (await call.use_cases.profile.remove(call.scope, kind, name)).audit_id}
        case _:
            raise InvalidInput("Nothing was done. done is for notes; use remove for other entries.")


async def change_inbox_note(call: ToolCallContext, action: ProfileAction, name: str, value: str) -> dict[str, Any]:
    match action:
        case "set":
            written = await call.use_cases.profile.write_note(call.scope, name, value)
            return {"notes": [note_as_json(written.note)]} | without_empty_fields(redacted=dict(written.redacted))
        case "done":
            await call.use_cases.profile.close_note(
                call.scope, await call.use_cases.short_ids.full_id(call.scope, "note", name)
            )
            return {"done": name}
        case "remove":
            note_id = await call.use_cases.short_ids.full_id(call.scope, "note", name)
            await call.use_cases.profile.close_note(call.scope, note_id, remove=True)
            return {"removed": name}
        case _:
            raise InvalidInput(
                f"Nothing was done. {action} is for rules and preferences; use done or remove for notes."
            )


async def profile_entries_as_json(call: ToolCallContext, entries: Sequence[ProfileEntry]) -> list[dict[str, Any]]:
    short_ids = await call.use_cases.short_ids.short_id_by_memory_id(
        call.scope, [entry.memory_id for entry in entries if entry.memory_id]
    )
    return [profile_entry_as_json(entry, short_ids) for entry in entries]


def profile_entry_as_json(entry: ProfileEntry, short_ids: Mapping[MemoryId, str]) -> dict[str, Any]:
    switchable = entry.kind in ("partner_rules", "preferences")
    memory_id = short_ids[entry.memory_id] if entry.memory_id else None
    name = memory_id if entry.is_learnt_from_memory else entry.name
    return {"kind": entry.kind, "name": name, "text": entry.value} | without_empty_fields(
        enabled=entry.enabled if switchable else None, memory_id=memory_id, updated=datetime_as_iso(entry.updated_at)
    )


def note_as_json(note: Note) -> dict[str, Any]:
    shown = {"id": short_id_of_non_memory(note.id), "type": note.type, "text": note.shown_text}
    return shown | {"when": datetime_as_iso(note.created_at)}
