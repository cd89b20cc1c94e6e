"""`related` and `relate`: who and what memories name, and how that is related over time (spec O14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.graph.values import (
    MAX_ENTITY_CHARS,
    MAX_RELATION_CHARS,
    EntityWithMemoryCount,
    NeighbourEntity,
    RelatedEntities,
    RelationWithMemory,
)
from madeleine.memory.model import Memory
from madeleine.memory.rules.dynamics.truth import beginning_of_validity
from madeleine.tools.arguments import NonEmptyText, ShortText, ToolArguments
from madeleine.tools.reading import parse_as_of
from madeleine.tools.replies import brief_memory_as_json, notice_field, without_empty_fields
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function

MAX_RELATIONS_STATED_AT_ONCE = 20


class RelatedArguments(ToolArguments):
    entity: Annotated[
        ShortText, Field(description="A person, thing, place, theme or day. Left out: the commonest.")
    ] = ""
    hops: Annotated[int, Field(ge=1, le=2, description="2: also what its neighbours are related to.")] = 1
    as_of: Annotated[ShortText, Field(description="Date: what was true then.")] = ""
    limit: Annotated[int, Field(ge=1, le=50, description="Of relations, of neighbours a hop, of the timeline.")] = 10


@tool_from_function(
    RelatedArguments,
    object_schema("", object="entity", array="relations neighbours timeline entities", string="notice"),
    name="related",
    read_only=True,
    idempotent=True,
    listed=False,
    permission="read",
)
async def find_related_entities(call: ToolCallContext, arguments: RelatedArguments) -> dict[str, Any]:
    """Follow what memories tell around a person, a thing, a place or a theme: its relations to others, what it is named
    together with, and its timeline with what was true before. For questions that need two memories at once; to find one
    memory call recall. Nothing counts as recalled."""
    as_of = parse_as_of(arguments.as_of)
    graph = call.use_cases.graph
    if not arguments.entity.strip():
        found = await graph.most_mentioned_entities(call.scope, limit=arguments.limit)
        return {"entities": [entity_as_json(one) for one in found]}
    result = await graph.find_related(
        call.scope, arguments.entity, hops=arguments.hops, limit=arguments.limit, as_of=as_of
    )
    call.audit_recall("related", dict.fromkeys(memory.id for memory in _memories_shown_in_related_entities(result)))
    if result.entity is None:
        return {"entities": [entity_as_json(one) for one in result.named_like]} | notice_field(
            f"No memory names {arguments.entity!r}.", _ENTITY_GRAPH_INCOMPLETE_NOTICE if result.is_incomplete else ""
        )
    return without_empty_fields(
        entity=entity_as_json(result.entity),
        relations=[relation_as_json(one) for one in result.relations],
        neighbours=[neighbour_entity_as_json(one) for one in result.neighbours],
        timeline=[timeline_memory_as_json(memory) for memory in result.timeline],
        entities=[entity_as_json(one) for one in result.named_like],
    ) | notice_field(
        f"{result.omitted} earlier memories name it: raise limit." if result.omitted else "",
        _ENTITY_GRAPH_INCOMPLETE_NOTICE if result.is_incomplete else "",
    )


_ENTITY_GRAPH_INCOMPLETE_NOTICE = "Some memories are still to be read: ask again in a moment."


def _memories_shown_in_related_entities(result: RelatedEntities) -> Iterator[Memory]:
    yield from (one.memory for one in result.relations)
    yield from (memory for one in result.neighbours for memory in one.memories)
    yield from result.timeline


def entity_as_json(entity: EntityWithMemoryCount) -> dict[str, Any]:
    return {"name": entity.name, "kind": entity.kind, "memories": entity.memories}


def relation_as_json(dated: RelationWithMemory) -> dict[str, Any]:
    relation, memory = dated.relation, dated.memory
    shown = {"subject": relation.subject, "relation": relation.relation, "object": relation.object}
    return shown | _relation_source_as_json(memory) | without_empty_fields(stated=relation.stated or None)


def neighbour_entity_as_json(neighbour: NeighbourEntity) -> dict[str, Any]:
    return {"name": neighbour.name, "kind": neighbour.kind} | without_empty_fields(
        via=neighbour.via,
        weight=round(neighbour.weight, 2),
        memories=[memory.short_id for memory in neighbour.memories],
    )


def timeline_memory_as_json(memory: Memory) -> dict[str, Any]:
    return brief_memory_as_json(memory) | _valid_until_as_json(memory)


def _relation_source_as_json(memory: Memory) -> dict[str, Any]:
    begin = beginning_of_validity(memory)
    since = {"since": begin.date().isoformat()} if begin else {}
    return {"memory": memory.short_id} | since | _valid_until_as_json(memory)


def _valid_until_as_json(memory: Memory) -> dict[str, Any]:
    return {"until": memory.valid_until.date().isoformat()} if memory.valid_until else {}


EntityText = Annotated[NonEmptyText, Field(max_length=MAX_ENTITY_CHARS)]


class RelationArguments(ToolArguments):
    subject: EntityText
    relation: Annotated[NonEmptyText, Field(max_length=MAX_RELATION_CHARS, description="As 'is the sister of'.")]
    object: EntityText


class RelateArguments(ToolArguments):
    memory: Annotated[ShortText, Field(description="Id of the memory that says so.")]
    relations: Annotated[list[RelationArguments], Field(min_length=1, max_length=MAX_RELATIONS_STATED_AT_ONCE)]
    remove: Annotated[bool, Field(description="Take back what was stated.")] = False


@tool_from_function(
    RelateArguments,
    object_schema("memory", string="memory notice", integer="stated removed", object="redacted"),
    name="relate",
    listed=False,
)
async def add_or_remove_stated_relations(call: ToolCallContext, arguments: RelateArguments) -> dict[str, Any]:
    """State how persons, things, places and themes are related, as a memory says it: what no rule can read out of its
    text, such as who "she" is. It holds as long as the memory does, and ends when that is superseded."""
    if not arguments.memory.strip():
        raise InvalidInput("Nothing was written. memory: the id of the memory that says so.")
    [memory_id] = (await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, [arguments.memory])).values()
    relations = [(one.subject, one.relation, one.object) for one in arguments.relations]
    done = await call.use_cases.graph.change_stated_relations(call.scope, memory_id, relations, remove=arguments.remove)
    counted = {"removed" if arguments.remove else "stated": done.count}
    return {"memory": done.memory.short_id} | counted | without_empty_fields(redacted=dict(done.redacted))
