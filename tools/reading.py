"""`recall`, `recall_memory`, `search_memory`: by meaning, by id, by words (spec P9 to P11, L2, H1 to H4)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.keyword_search import KeywordQuery, SearchSource
from madeleine.memory.model import Category, ClusterId, Memory, MemoryId
from madeleine.memory.recall.outside_memories import NO_NON_MEMORY_MATCHES, NonMemoryMatches
from madeleine.memory.recall.recall import RecallResult
from madeleine.memory.recall.search import BrowsedMemories, SearchPage, split_search_terms
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.retention.ports import ArchiveQuery
from madeleine.memory.rules.prompting import (
    MEMORY_BLOCK_RENDERER,
    RECALL_LIST_RENDERER,
    RandomSource,
    make_fragments_renderer,
    memories_in_prompt_order,
)
from madeleine.memory.rules.ranking.profiles import RankingProfile
from madeleine.tools.archive import archived_memory_as_json
from madeleine.tools.arguments import DetailsFlag, LongText, ShortText, ToolArguments, unique
from madeleine.tools.context import conversation_start_prompt
from madeleine.tools.dates import parse_iso_period_argument, parse_time_window, recall_by_days_if_asked_for
from madeleine.tools.explaining import ids_of_explained_memories, recall_explanation_as_json, resolve_explain_argument
from madeleine.tools.feelings import BRIEF_EMOTION_LABELS_SCHEMA, EmotionLabelsArgument
from madeleine.tools.profile import profile_entry_as_json
from madeleine.tools.replies import (
    brief_memory_as_json,
    cluster_as_json,
    detailed_memory_as_json,
    memory_without_text_as_json,
    notice_field,
    search_hit_as_json,
    short_id_by_referenced_memory_id,
    undecided_supersession_as_json,
    without_empty_fields,
    words_only_notice,
)
from madeleine.tools.tool import Tool, ToolCallContext, object_schema, tool_from_function

MAX_SEARCH_WORDS = 32
DEFAULT_FRAGMENT_MEMORY_COUNT = 3
"""spec P9."""
MAX_RECALLED_MEMORIES_WITHOUT_LIMIT = 10
"""Of the other formats, where the caller sets no limit."""

MAX_MEMORIES_OF_CALENDAR_QUERY = 50
"""Where a query asks for days and the caller sets no limit."""
MAX_ARCHIVED_HITS_IN_SEARCH = 5
ARCHIVED_HITS_RESTORE_HINT = (
    "What is archived comes back by the tool archive, or `madeleine archive restore` and its id."
)

RecallFormat = Literal["fragments", "memories", "prompt"]


class RecallArguments(ToolArguments):
    query: Annotated[LongText, Field(description="Message or topic.")] = ""
    limit: Annotated[int | None, Field(ge=1, le=50, description="Default: 3 fragments, else what matches.")] = None
    categories: Annotated[list[Category], Field(max_length=5)] = []
    themes: Annotated[list[ShortText], Field(max_length=20, description="All of these.")] = []
    emotions: Annotated[
        EmotionLabelsArgument, BRIEF_EMOTION_LABELS_SCHEMA, Field(description="Felt now; labels as in store.")
    ] = []
    since: Annotated[ShortText, Field(description="Event: ISO date, month, year.")] = ""
    until: Annotated[ShortText, Field(description="Inclusive.")] = ""
    include_compressed: Annotated[bool, Field(description="Summarised too.")] = False
    ranking: RankingProfile | None = None
    token_budget: Annotated[int, Field(ge=1, le=100_000, description="For the texts.")] = 2000
    format: Annotated[
        RecallFormat,
        Field(description="memories: facts, dates, ids; fragments: a mood; prompt: <memory> block."),
    ] = "fragments"
    as_of: Annotated[ShortText, Field(description="What was true then.")] = ""
    project: Annotated[ShortText, Field(description="Its own too.")] = ""
    details: DetailsFlag = False
    explain: Annotated[bool | ShortText, Field(description="Why; an id: why not.")] = False


def make_recall_tool(rng: RandomSource) -> Tool:
    renderers = {
        "fragments": make_fragments_renderer(rng),
        "memories": RECALL_LIST_RENDERER,
        "prompt": MEMORY_BLOCK_RENDERER,
    }

    @tool_from_function(
        RecallArguments,
        object_schema("", string="fragments prompt start notice", array="memories preferences near"),
        counts_recalls=True,
        permission="read",
    )
    async def recall(call: ToolCallContext, arguments: RecallArguments) -> dict[str, Any]:
        """Recall the few memories that matter for a message; without a query the start: pinned, preferences, notes,
        diary, changes. Call it first, and whenever the past may matter. memories: what matches;
        preferences: how to behave; near: related, unsure; omitted: more matches. Empty
        does not mean unknown: ask in other words, or use search_memory."""
        call = call.in_project(arguments.project)
        if not arguments.query.strip():
            return await _conversation_start_as_json(call, arguments)
        times = parse_time_window(arguments.since, arguments.until)
        as_of = parse_as_of(arguments.as_of)
        limit = arguments.limit or DEFAULT_FRAGMENT_MEMORY_COUNT
        most = 0 if arguments.limit or arguments.format == "fragments" else MAX_RECALLED_MEMORIES_WITHOUT_LIMIT
        query = arguments.to_dataclass(
            RecallQuery, text=arguments.query, limit=limit, max_limit=most, as_of=as_of,
            counts_tokens=arguments.details, **times,
        )  # fmt: skip
        explain = await resolve_explain_argument(call, arguments.explain)
        renderer = renderers[arguments.format]
        recall = partial(
            call.use_cases.recall,
            call.scope,
            renderer=renderer,
            language=call.language_model,
            explain=None if explain is None else [*explain],
        )
        most_of_days = limit if arguments.limit or arguments.format == "fragments" else MAX_MEMORIES_OF_CALENDAR_QUERY
        lists_all = arguments.format == "memories"
        result = await recall_by_days_if_asked_for(call, recall, query, most=most_of_days, lists_all=lists_all)
        memories = [memory for memory, _ in (*result.preferences, *result.memories)]
        elsewhere = (
            NO_NON_MEMORY_MATCHES
            if result.memories
            else await call.use_cases.find_non_memory_matches(call.scope, query)
        )
        shown = dict.fromkeys(
            (*(memory.id for memory in (*memories, *result.near)), *ids_of_explained_memories(result))
        )
        call.audit_recall("recall", [*shown, *elsewhere.ids])
        answer = recall_result_as_json(result, arguments.format, elsewhere)
        if result.explanation is not None:
            answer["explain"] = await recall_explanation_as_json(call, result.explanation, explain or {})
        if not arguments.details:
            return answer
        short_ids = await short_id_by_referenced_memory_id(call, memories)
        return answer | recall_details_as_json(result, arguments.format, short_ids)

    return recall


async def _conversation_start_as_json(call: ToolCallContext, arguments: RecallArguments) -> dict[str, Any]:
    """The start of a conversation (ruling 18). Nothing is activated."""
    times = (arguments.as_of, arguments.since, arguments.until)
    if arguments.themes or arguments.categories or arguments.emotions or any(times):
        raise InvalidInput(
            "Without a query recall only begins a conversation. To list by theme or date: search_memory."
        )
    text = await conversation_start_prompt(call, arguments.token_budget, audited_as="recall")
    return {"start": text} if text else notice_field("Nothing is stored yet.")


def parse_as_of(text: str) -> datetime | None:
    """The end of a day, a month or a year: what has changed in it counts as changed."""
    period = parse_iso_period_argument("as_of", text)
    return period.end if period else None


def recall_result_as_json(
    result: RecallResult, format_: RecallFormat, non_memory_matches: NonMemoryMatches = NO_NON_MEMORY_MATCHES
) -> dict[str, Any]:
    recalled = [memory for memory, _ in (*result.preferences, *result.memories)]
    short_ids = {memory.id: memory.short_id for memory in (*recalled, *result.near)}

    def item(memory: Memory, score: float | None = None) -> dict[str, Any]:
        return brief_memory_as_json(memory, score) | undecided_supersession_as_json(memory, short_ids)

    preferences = [item(memory, score) for memory, score in result.preferences]
    content: dict[str, Any] = {"memories": [item(memory, score) for memory, score in result.memories]}
    if format_ != "memories":  # a text does not name its memories
        sources = [
            memory_without_text_as_json(memory) | undecided_supersession_as_json(memory, short_ids)
            for memory, _ in _memories_shown_in_recall_text(result, format_)
        ]
        content = {format_: result.text} | without_empty_fields(sources=sources)
    if format_ != "prompt":
        content |= without_empty_fields(preferences=preferences)
    too_long = ", ".join(memory.short_id for memory in result.too_long)
    content |= without_empty_fields(
        near=[
            *map(item, result.near),
            *({"source": "profile"} | profile_entry_as_json(entry, {}) for entry in non_memory_matches.entries),
            *(search_hit_as_json(hit) for hit in non_memory_matches.hits),
        ],
        unknown_words=list(result.unknown_words),
        truncated=[memory.short_id for memory, _ in result.memories if memory.id in result.truncated],
        omitted=result.omitted or None,
        faded=result.faded or None,
    )
    return content | notice_field(
        words_only_notice(result.words_only_reason),
        *result.notices,
        f"Too long for token_budget: {too_long}. Raise it, or open them with recall_memory." if too_long else "",
        other_projects_notice(non_memory_matches.projects),
    )


def other_projects_notice(projects: Sequence[str]) -> str:
    names = ", ".join(repr(name) for name in projects)
    return f"What belongs to a project is found with its name in project: {names}." if projects else ""


def _memories_shown_in_recall_text(result: RecallResult, format_: RecallFormat) -> list[tuple[Memory, float]]:
    """What the text of this format holds, with scores; the lines of a block in their order."""
    if format_ != "prompt":
        return list(result.memories)
    scored = [*result.preferences, *result.memories]
    scores = {memory.id: score for memory, score in scored}
    return [(memory, scores[memory.id]) for memory in memories_in_prompt_order(memory for memory, _ in scored)]


def recall_details_as_json(
    result: RecallResult, format_: RecallFormat, short_ids: Mapping[MemoryId, str]
) -> dict[str, Any]:
    """What an answer with details has instead of `memories`, `preferences` or `sources`, and besides."""
    memories, preferences = (
        [detailed_memory_as_json(memory, short_ids) | brief_memory_as_json(memory, score) for memory, score in scored]
        for scored in (
            _memories_shown_in_recall_text(result, format_),
            () if format_ == "prompt" else result.preferences,
        )
    )
    if format_ != "memories":
        for memory in memories:
            del memory["text"]
    return {
        "memories" if format_ == "memories" else "sources": memories,
        **without_empty_fields(preferences=preferences),
        "count": len(result.memories),
        "total_tokens": result.total_tokens,
        "budget_used": round(result.budget_used, 4),
        **without_empty_fields(reformulated=list(result.reformulated)),
    }


class RecallMemoryArguments(ToolArguments):
    ids: Annotated[list[ShortText], Field(min_length=1, max_length=50)] | None = None
    cluster_id: ShortText = ""
    limit: Annotated[int, Field(ge=1, le=100, description="Per page.")] = 20
    cursor: Annotated[ShortText, Field(description="The last next_cursor.")] = ""
    details: Annotated[bool | None, Field(description="All fields; default with ids.")] = None


@tool_from_function(
    RecallMemoryArguments,
    object_schema("", array="memories clusters missing", string="next_cursor"),
    name="recall_memory",
    counts_recalls=True,
    permission="read",
)
async def read_whole_memories(call: ToolCallContext, arguments: RecallMemoryArguments) -> dict[str, Any]:
    """Read whole memories, with their history and where they come from, faded ones too (status dead): by ids such as
    m12, or all of a cluster_id, newest first. Without arguments: the clusters. By meaning use recall, by words
    search_memory."""
    ids, cluster, cursor = arguments.ids, arguments.cluster_id, arguments.cursor
    browse = call.use_cases.browse
    if ids and cluster:
        raise InvalidInput("Give ids or cluster_id, not both.")
    if cursor and not cluster:
        raise InvalidInput("cursor: needs the cluster_id it came from; repeat that, or leave the cursor out.")
    if not ids and not cluster:
        clusters = await browse.clusters_with_moods(call.scope)
        return {"clusters": [cluster_as_json(cluster, mood) for cluster, mood in clusters]}
    if ids:
        full_ids = await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, ids)
        page = await browse.by_ids(call.scope, list(full_ids.values()))
        missing = [id_ for id_, full_id in full_ids.items() if full_id in page.missing]
    else:
        cluster_id = ClusterId(await call.use_cases.short_ids.full_id(call.scope, "cluster", cluster))
        page = await browse.memories_of_cluster(call.scope, cluster_id, limit=arguments.limit, cursor=cursor)
        missing = []
    call.audit_recall("recall_memory", [memory.id for memory in page.memories])
    with_details = bool(ids) if arguments.details is None else arguments.details
    short_ids = await short_id_by_referenced_memory_id(call, page.memories) if with_details else None
    archived = await call.use_cases.archive.archival_index(call.scope, page.missing) if page.missing else []
    return (
        memory_page_as_json(page, short_ids)
        | without_empty_fields(missing=missing, archived={entry.short_id: entry.archival_id for entry in archived})
        | notice_field(ARCHIVED_HITS_RESTORE_HINT if archived else "")
    )


def memory_page_as_json(page: BrowsedMemories, short_ids: Mapping[MemoryId, str] | None) -> dict[str, Any]:
    """With all details if `short_ids` are given, of the memories that those of the page refer to."""
    if short_ids is None:
        memories = [brief_memory_as_json(memory) for memory in page.memories]
    else:
        memories = [
            detailed_memory_as_json(
                memory,
                short_ids,
                [revision for revision in page.revisions if revision.memory_id == memory.id],
                page.versions.get(memory.id, ()),
            )
            for memory in page.memories
        ]
    return {"memories": memories} | without_empty_fields(next_cursor=page.next_cursor)


class SearchArguments(ToolArguments):
    query: Annotated[LongText, Field(description='Words, "a phrase"; a message with mode subject.')] = ""
    mode: Annotated[
        Literal["or", "and", "subject"], Field(description="Any word, all words, or a message's subject.")
    ] = "or"
    themes: Annotated[list[ShortText], Field(max_length=20, description="All of these.")] = []
    categories: Annotated[list[Category], Field(max_length=5)] = []
    since: Annotated[ShortText, Field(description="Event: ISO date, month, year.")] = ""
    until: Annotated[ShortText, Field(description="Inclusive.")] = ""
    sources: Annotated[list[SearchSource], Field(min_length=1, max_length=4)] = ["memories", "diary", "chat", "notes"]
    include_dead: Annotated[bool, Field(description="Faded too.")] = True
    include_compressed: Annotated[bool, Field(description="Summarised too.")] = False
    as_of: Annotated[ShortText, Field(description="What was true then.")] = ""
    project: Annotated[ShortText, Field(description="Its own too.")] = ""
    limit: Annotated[int, Field(ge=1, le=100, description="Per page.")] = 10
    cursor: Annotated[ShortText, Field(description="The last next_cursor.")] = ""
    details: DetailsFlag = False


@tool_from_function(
    SearchArguments,
    object_schema("hits", array="hits", string="next_cursor notice"),
    counts_recalls=True,
    permission="read",
)
async def search_memory(call: ToolCallContext, arguments: SearchArguments) -> dict[str, Any]:
    """Search memories, diary, chat and notes for exact text, newest first: names, dates, phrases; without query, list
    memories by date or theme. For look-ups, time spans, faded ones (dead). By meaning use recall."""
    call = call.in_project(arguments.project)
    page = await _search_with_arguments(call, arguments)
    call.audit_recall("search_memory", [hit.id for hit in page.hits])
    hits = [search_hit_as_json(hit, details=arguments.details) for hit in page.hits]
    respelled = (f"Nothing has {word!r}; {other!r} was searched instead." for word, other in page.respelled.items())
    archived = [] if arguments.cursor or arguments.mode == "subject" else await _archived_hits(call, arguments)
    projects = (
        []
        if hits or arguments.cursor
        else await call.use_cases.find_non_memory_matches.unsearched_project_names(call.scope)
    )
    return (
        {"hits": hits}
        | without_empty_fields(next_cursor=page.next_cursor, omitted=page.omitted or None, archived=archived)
        | notice_field(*respelled, ARCHIVED_HITS_RESTORE_HINT if archived else "", other_projects_notice(projects))
    )


async def _archived_hits(call: ToolCallContext, arguments: SearchArguments) -> list[dict[str, Any]]:
    """What the archive has with the words of the query; nothing of it is counted as recalled (spec O8)."""
    terms = split_search_terms(arguments.query)
    if not terms or "memories" not in arguments.sources or arguments.as_of:
        return []
    mode: Literal["or", "and"] = "and" if arguments.mode == "and" else "or"
    entries = await call.use_cases.archive.search_archived(
        call.scope, ArchiveQuery(terms=terms, mode=mode, limit=MAX_ARCHIVED_HITS_IN_SEARCH)
    )
    if entries:
        call.audit_recall("search_memory", [entry.memory.id for entry in entries])
    return [archived_memory_as_json(entry) for entry in entries]


async def _search_with_arguments(call: ToolCallContext, arguments: SearchArguments) -> SearchPage:
    by_words = arguments.query != ""
    all_sources = by_words and not arguments.as_of  # only memories say since when they are true
    query = arguments.to_dataclass(
        KeywordQuery,
        terms=(),
        mode="or",
        themes=tuple(unicodedata.normalize("NFKC", theme).casefold() for theme in arguments.themes),
        **parse_time_window(arguments.since, arguments.until),
        as_of=parse_as_of(arguments.as_of),
        include_retracted=True,
        sources=unique(arguments.sources) if all_sources or "sources" in arguments.model_fields_set else ("memories",),
    )
    if arguments.mode == "subject":
        if not by_words:
            raise InvalidInput("query: is required with mode subject. Give a message, or leave mode out for a list.")
        if arguments.cursor:
            raise InvalidInput("cursor: mode subject has one page. Raise limit for more, or leave the cursor out.")
        return await call.use_cases.search.search_by_tags_of_message(call.scope, arguments.query, query)
    terms = split_search_terms(arguments.query)
    if len(terms) > MAX_SEARCH_WORDS:
        raise InvalidInput(
            f"query: has {len(terms)} words, at most {MAX_SEARCH_WORDS} are searched. Keep the specific ones."
        )
    return await call.use_cases.search(
        call.scope, replace(query, terms=terms, mode=arguments.mode), cursor=arguments.cursor
    )
