"""`profile`: who the being is and whom it deals with (spec P5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Note
from madeleine.memory.profile import ProfileEntry, ProfileKind
from madeleine.tools.arguments import Arguments, Short, not_blank, storable
from madeleine.tools.replies import moment, present
from madeleine.tools.tool import OBJECTS, TEXT, Call, Tool, answer_schema

VALUE_CHARS = 8_000
"""Of an entry: it is in every prompt."""

Value = Annotated[
    str, BeforeValidator(storable), AfterValidator(not_blank), Field(min_length=1, max_length=VALUE_CHARS)
]


Kind = Literal[
    "soul", "partner_rules", "preferences", "relationships", "tools", "map", "knowledge", "notes"
]  # fmt: skip


class ProfileArguments(Arguments):
    action: Annotated[
        Literal["show", "set", "enable", "disable", "done", "remove"],
        Field(description="enable and disable: of partner_rules and preferences; done: of a note."),
    ] = "show"
    kind: Annotated[Kind | None, Field(description="Of which kind; all if left out.")] = None
    name: Annotated[
        Short | None,
        Field(
            description="Of the entry. The soul has personality, voice, values, backstory, inner_world, examples. Of a "
            "note: its type (todo, reminder) to set it, its id for done and remove."
        ),
    ] = None
    value: Annotated[Value | None, Field(description="To set.")] = None


async def run(call: Call, arguments: ProfileArguments) -> dict[str, Any]:
    kind, name, value = arguments.kind, arguments.name, arguments.value
    if arguments.action == "show":
        _refuse(arguments, "value" if value else "")
        found = await show(call, kind, name)
        call.use.audit(call.scope, "recall", tool="profile", ids=shown(found))
        return found
    if kind is None or name is None:
        raise InvalidInput(f"Nothing was done. kind and name: both are needed to {arguments.action} something.")
    if (arguments.action == "set") != (value is not None):
        raise InvalidInput("Nothing was done. value: it is needed to set something, and only then.")
    if kind == "notes":
        return await change_note(call, arguments.action, name, value or "")
    return await change_entry(call, arguments.action, kind, name, value or "")


def _refuse(arguments: ProfileArguments, needless: str) -> None:
    if needless:
        raise InvalidInput(f"Nothing was done. {needless}: leave it out to show something, or take the action set.")


async def show(call: Call, kind: Kind | None, name: str | None) -> dict[str, Any]:
    """Audited by whoever shows it: a tool, or a resource."""
    found: dict[str, Any] = {}
    if kind != "notes":
        found["entries"] = [as_json(one) for one in await call.use.profile.read(call.scope, kind, name or "")]
    if kind in (None, "notes"):
        notes = await call.use.profile.notes(call.scope)
        found["notes"] = [note_as_json(one) for one in notes if name is None or name in (one.type, one.id)]
    return found


async def change_entry(call: Call, action: str, kind: ProfileKind, name: str, value: str) -> dict[str, Any]:
    profile = call.use.profile
    match action:
        case "set":
            written = await profile.write(call.scope, kind, name, value)
            return {"entries": [as_json(written.entry)]} | taken_out(written.redacted)
        case "enable" | "disable":
            return {"entries": [as_json(await profile.enable(call.scope, kind, name, action == "enable"))]}
        case "remove":
            return {"removed": (await profile.remove(call.scope, kind, name)).id}
        case _:
            raise InvalidInput("Nothing was done. done is for notes; an entry of another kind can be removed.")


async def change_note(call: Call, action: str, name: str, value: str) -> dict[str, Any]:
    profile = call.use.profile
    match action:
        case "set":
            noted = await profile.note(call.scope, name, value)
            return {"notes": [note_as_json(noted.note)]} | taken_out(noted.redacted)
        case "done" | "remove":
            await profile.close_note(call.scope, name, remove=action == "remove")
            return {"removed" if action == "remove" else "done": name}
        case _:
            raise InvalidInput(
                f"Nothing was done. {action} is for rules and preferences; a note can be done or removed."
            )


def taken_out(redacted: Mapping[str, int]) -> dict[str, Any]:
    return {"redacted": dict(redacted)} if redacted else {}


def shown(content: Mapping[str, Any]) -> list[str]:
    """The ids that an answer names: of entries, their memories, and notes (spec O4)."""
    items = [*content.get("entries", []), *content.get("notes", [])]
    return [str(item[key]) for item in items for key in ("id", "memory_id") if key in item]


def as_json(entry: ProfileEntry) -> dict[str, Any]:
    shown = {"id": entry.id, "kind": entry.kind, "name": entry.name, "value": entry.value}
    state = {"enabled": entry.enabled} if entry.kind in ("partner_rules", "preferences") else {}
    return shown | state | present({"memory_id": entry.memory_id, "updated_at": moment(entry.updated_at)})


def note_as_json(note: Note) -> dict[str, Any]:
    return {"id": note.id, "type": note.type, "content": note.content, "created_at": moment(note.created_at)}


TOOL = Tool(
    name="profile",
    description=(
        "Who this memory's owner is to be and whom it deals with: soul, partner_rules, preferences, relationships, "
        "tools, map, knowledge, and open notes. Shown in every context. Set replaces the entry of that name; a "
        "preference is recalled as well, and removing it forgets that memory. For what happened use store."
    ),
    arguments=ProfileArguments,
    answers=answer_schema((), entries=OBJECTS, notes=OBJECTS, removed=TEXT, done=TEXT, redacted={"type": "object"}),
    run=run,
    read_only=False,
    destructive=True,
    idempotent=False,
    shows=False,
    listed=False,
)
