"""`recall_memory`: whole memories, by id or by cluster (spec P10)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import ClusterId, MemoryId
from madeleine.memory.recall.browse import MemoryPage
from madeleine.tools.arguments import Arguments, Short
from madeleine.tools.replies import present, whole
from madeleine.tools.tool import OBJECTS, TEXT, Call, Tool, answer_schema


class RecallMemoryArguments(Arguments):
    memory_ids: Annotated[list[Short], Field(min_length=1, max_length=50)] | None = None
    cluster_id: Short | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: Annotated[Short | None, Field(description="next_cursor of the last page.")] = None


async def run(call: Call, arguments: RecallMemoryArguments) -> dict[str, Any]:
    if arguments.memory_ids is not None and arguments.cluster_id is not None:
        raise InvalidInput("Give memory_ids or cluster_id, not both.")
    if arguments.cursor is not None and arguments.cluster_id is None:
        raise InvalidInput("cursor: goes with cluster_id; repeat the cluster_id it came from, or leave it out.")
    if arguments.memory_ids is not None:
        return shown(await call.use.browse.by_ids(call.scope, [MemoryId(id_) for id_ in arguments.memory_ids]))
    if arguments.cluster_id is not None:
        return shown(
            await call.use.browse.by_cluster(
                call.scope, ClusterId(arguments.cluster_id), limit=arguments.limit, cursor=arguments.cursor or ""
            )
        )
    return {"clusters": [asdict(cluster) for cluster in await call.use.browse.clusters(call.scope)]}


def shown(found: MemoryPage) -> dict[str, Any]:
    rest = present({"missing": list(found.missing), "next_cursor": found.next_cursor})
    history = {memory.id: [one for one in found.revisions if one.memory_id == memory.id] for memory in found.memories}
    return {"memories": [whole(memory, history[memory.id]) for memory in found.memories]} | rest


TOOL = Tool(
    name="recall_memory",
    description=(
        "Whole memories with all that is known of them, faded ones too (status dead): by memory_ids, or all of "
        "a cluster_id, newest first. Without arguments: the list of "
        "clusters. To find memories by meaning use recall, by words search_memory."
    ),
    arguments=RecallMemoryArguments,
    answers=answer_schema((), memories=OBJECTS, clusters=OBJECTS, next_cursor=TEXT),
    run=run,
    read_only=False,
    destructive=False,
    idempotent=False,
    only_counts=True,
)
