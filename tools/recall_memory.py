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
from madeleine.tools.tool import Call, Tool, answer_schema


class RecallMemoryArguments(Arguments):
    memory_ids: Annotated[list[Short], Field(min_length=1, max_length=50)] | None = None
    cluster_id: Short | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: Annotated[Short | None, Field(description="next_cursor of the last page.")] = None


async def run(call: Call, arguments: RecallMemoryArguments) -> dict[str, Any]:
    ids, cluster, cursor = arguments.memory_ids, arguments.cluster_id, arguments.cursor
    browse = call.use.browse
    if ids is not None and cluster is not None:
        raise InvalidInput("Give memory_ids or cluster_id, not both.")
    if cursor is not None and cluster is None:
        raise InvalidInput("cursor: needs the cluster_id it came from; repeat that, or leave the cursor out.")
    if ids is not None:
        return as_json(await browse.by_ids(call.scope, [MemoryId(id_) for id_ in ids]))
    if cluster is not None:
        page = await browse.by_cluster(call.scope, ClusterId(cluster), limit=arguments.limit, cursor=cursor or "")
        return as_json(page)
    return {"clusters": [asdict(cluster) for cluster in await browse.clusters(call.scope)]}


def as_json(page: MemoryPage) -> dict[str, Any]:
    memories = [
        whole(memory, [revision for revision in page.revisions if revision.memory_id == memory.id])
        for memory in page.memories
    ]
    return {"memories": memories} | present({"missing": list(page.missing), "next_cursor": page.next_cursor})


TOOL = Tool(
    name="recall_memory",
    description=(
        "Read whole memories, faded ones too (status dead): by memory_ids, or all of a cluster_id, newest first. "
        "Without arguments: the list of clusters. To find memories by meaning use recall, by words search_memory."
    ),
    arguments=RecallMemoryArguments,
    answers=answer_schema("", array="memories clusters", string="next_cursor"),
    run=run,
    audited=True,
    counts_recalls=True,
)
