"""`recall`, `recall_memory`, `search_memory`: by meaning, by id, by words (spec P9 to P11, L2, H1 to H4)."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.keyword_search import KeywordQuery, SearchSource
from madeleine.memory.model import Category, ClusterId, MemoryId
from madeleine.memory.recall.recall import RecallResult
from madeleine.memory.recall.search import BrowsedMemories, SearchPage, split_search_terms
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.prompting import LIST_FORMAT, MEMORY_BLOCK_FORMAT, RandomSource, make_fragments_format
from madeleine.memory.rules.ranking.profiles import RankingProfile
from madeleine.tools.arguments import EmotionLabels, LongText, ShortText, ToolArguments, unique
from madeleine.tools.dates import period_argument
from madeleine.tools.replies import hit_json, meaning_notice, memory_json, nonempty, notice, recalled_json, source_json
from madeleine.tools.tool import Call, Tool, answer_schema, tool

MAX_SEARCH_WORDS = 32

RecallFormat = Literal["fragments", "memories", "prompt"]


class RecallArguments(ToolArguments):
    query: Annotated[LongText, Field(description="The current message or topic.")]
    limit: Annotated[int, Field(ge=1, le=50)] = 3
    categories: Annotated[list[Category], Field(max_length=5)] = []
    themes: Annotated[list[ShortText], Field(max_length=20, description="All of these.")] = []
    emotions: Annotated[EmotionLabels, Field(description="Felt now.")] = []
    ranking: RankingProfile | None = None
    token_budget: Annotated[int, Field(ge=1, le=100_000)] = 2000
    format: Annotated[
        RecallFormat, Field(description="fragments: shuffled; memories: with ids; prompt: <memory> block.")
    ] = "fragments"


def recall_tool(chance: RandomSource) -> Tool:
    formats = {"fragments": make_fragments_format(chance), "memories": LIST_FORMAT, "prompt": MEMORY_BLOCK_FORMAT}

    @tool(
        RecallArguments,
        answer_schema(
            "count total_tokens budget_used",
            string="fragments prompt",
            array="memories sources",
            integer="count total_tokens",
            number="budget_used",
        ),
        audited=True,
        counts_recalls=True,
    )
    async def recall(call: Call, arguments: RecallArguments) -> dict[str, Any]:
        """Recall the few memories most relevant to what is being said, preferences first; empty if none is related.
        Call it when a conversation begins and whenever the past may matter. For exact words, dates or paging use
        search_memory; by id recall_memory."""
        query = arguments.to_value(RecallQuery, text=arguments.query)
        result = await call.use.recall(call.scope, query, formats[arguments.format], language=call.language)
        return recall_result_as_json(result, arguments.format)

    return recall


def recall_result_as_json(result: RecallResult, format_: RecallFormat) -> dict[str, Any]:
    content: dict[str, Any] = {"memories": [recalled_json(memory, score) for memory, score in result.memories]}
    if format_ != "memories":  # a text does not name its memories
        content = {format_: result.text} | nonempty(sources=[source_json(memory) for memory, _ in result.memories])
    return {
        **content,
        "count": len(result.memories),
        "total_tokens": result.total_tokens,
        "budget_used": round(result.budget_used, 4),
        **nonempty(reformulated=list(result.reformulated)),
        **notice(meaning_notice(result.meaning_off), *result.notices),
    }


class RecallMemoryArguments(ToolArguments):
    memory_ids: Annotated[list[ShortText], Field(min_length=1, max_length=50)] | None = None
    cluster_id: ShortText = ""
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: Annotated[ShortText, Field(description="next_cursor of the last page.")] = ""


@tool(
    RecallMemoryArguments,
    answer_schema("", array="memories clusters", string="next_cursor"),
    audited=True,
    counts_recalls=True,
)
async def recall_memory(call: Call, arguments: RecallMemoryArguments) -> dict[str, Any]:
    """Read whole memories, faded ones too (status dead): by memory_ids, or all of a cluster_id, newest first. Without
    arguments: the list of clusters. To find memories by meaning use recall, by words search_memory."""
    ids, cluster, cursor = arguments.memory_ids, arguments.cluster_id, arguments.cursor
    browse = call.use.browse
    if ids and cluster:
        raise InvalidInput("Give memory_ids or cluster_id, not both.")
    if cursor and not cluster:
        raise InvalidInput("cursor: needs the cluster_id it came from; repeat that, or leave the cursor out.")
    if ids:
        return memory_page_as_json(await browse.by_ids(call.scope, [MemoryId(id_) for id_ in ids]))
    if cluster:
        page = await browse.by_cluster(call.scope, ClusterId(cluster), limit=arguments.limit, cursor=cursor)
        return memory_page_as_json(page)
    return {"clusters": [asdict(cluster) for cluster in await browse.clusters(call.scope)]}


def memory_page_as_json(page: BrowsedMemories) -> dict[str, Any]:
    memories = [
        memory_json(memory, [revision for revision in page.revisions if revision.memory_id == memory.id])
        for memory in page.memories
    ]
    return {"memories": memories} | nonempty(missing=list(page.missing), next_cursor=page.next_cursor)


class SearchArguments(ToolArguments):
    query: Annotated[LongText, Field(description='Words, "a phrase"; with mode tags a message.')]
    mode: Annotated[
        Literal["or", "and", "tags"], Field(description="Any word, all words, or the subject of a message.")
    ] = "or"
    themes: Annotated[list[ShortText], Field(max_length=20, description="All of these.")] = []
    categories: Annotated[list[Category], Field(max_length=5)] = []
    since: Annotated[ShortText, Field(description="ISO date, time, month or year.")] = ""
    until: Annotated[ShortText, Field(description="Inclusive.")] = ""
    sources: Annotated[list[SearchSource], Field(min_length=1, max_length=4)] = ["memories", "diary", "chat", "notes"]
    include_dead: Annotated[bool, Field(description="Faded ones too; being found helps revive them.")] = True
    include_compressed: bool = False
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    cursor: Annotated[ShortText, Field(description="next_cursor of the last page.")] = ""


@tool(SearchArguments, answer_schema("hits", array="hits", string="next_cursor"), audited=True, counts_recalls=True)
async def search_memory(call: Call, arguments: SearchArguments) -> dict[str, Any]:
    """Search memories, diary, chat and notes for exact words, newest first: names, dates, phrases. Use it to look
    something up, for a time span, or for faded memories (status dead). For similar meaning use recall."""
    page = await _search(call, arguments)
    return {"hits": [hit_json(hit) for hit in page.hits]} | nonempty(next_cursor=page.next_cursor)


async def _search(call: Call, arguments: SearchArguments) -> SearchPage:
    since, until = period_argument("since", arguments.since), period_argument("until", arguments.until)
    query = arguments.to_value(
        KeywordQuery,
        terms=(),
        mode="or",
        themes=tuple(unicodedata.normalize("NFKC", theme).casefold() for theme in arguments.themes),
        since=since.start if since else None,
        until=until.end if until else None,
        sources=unique(arguments.sources),
    )
    if arguments.mode == "tags":
        if arguments.cursor:
            raise InvalidInput("cursor: mode tags has one page. Raise limit for more, or leave the cursor out.")
        return await call.use.search.about(call.scope, arguments.query, query)
    terms = split_search_terms(arguments.query)
    if len(terms) > MAX_SEARCH_WORDS:
        raise InvalidInput(
            f"query: has {len(terms)} words, at most {MAX_SEARCH_WORDS} are searched. Keep the specific ones."
        )
    return await call.use.search(call.scope, replace(query, terms=terms, mode=arguments.mode), cursor=arguments.cursor)
