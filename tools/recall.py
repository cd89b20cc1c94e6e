"""`recall`: the memories that matter for what is being said (spec P9, L2)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.model import Category
from madeleine.memory.recall.ranking import RecallQuery
from madeleine.memory.recall.recall import RecallResult
from madeleine.memory.rules.prompting.answer_formats import LIST_FORMAT, PROMPT_FORMAT, fragments_format
from madeleine.memory.rules.prompting.fragments import RandomSource
from madeleine.memory.rules.ranking.profiles import RankingProfile
from madeleine.tools.arguments import Arguments, Emotions, LongText, Short
from madeleine.tools.replies import brief, meaning_notice, notice, present, source
from madeleine.tools.tool import Call, Tool, answer_schema

Format = Literal["fragments", "memories", "prompt"]


class RecallArguments(Arguments):
    query: Annotated[LongText, Field(description="The current message or topic.")]
    limit: Annotated[int, Field(ge=1, le=50)] = 3
    categories: Annotated[list[Category], Field(max_length=5)] = []
    themes: Annotated[list[Short], Field(max_length=20, description="All of these.")] = []
    emotions: Annotated[Emotions, Field(description="Felt now.")] = []
    ranking: RankingProfile | None = None
    token_budget: Annotated[int, Field(ge=1, le=100_000)] = 2000
    format: Annotated[Format, Field(description="fragments: shuffled; memories: with ids; prompt: <memory> block.")] = (
        "fragments"
    )


async def run(chance: RandomSource, call: Call, arguments: RecallArguments) -> dict[str, Any]:
    formats = {"fragments": fragments_format(chance), "memories": LIST_FORMAT, "prompt": PROMPT_FORMAT}
    query = RecallQuery(
        text=arguments.query,
        limit=arguments.limit,
        token_budget=arguments.token_budget,
        categories=tuple(arguments.categories),
        themes=tuple(arguments.themes),
        emotions=tuple(arguments.emotions),
        ranking=arguments.ranking,
    )
    result = await call.use.recall(call.scope, query, formats[arguments.format], language=call.language)
    return as_json(result, arguments.format)


def as_json(result: RecallResult, format_: Format) -> dict[str, Any]:
    content: dict[str, Any] = {"memories": [brief(memory, score) for memory, score in result.memories]}
    if format_ != "memories":  # a text does not name its memories
        content = {format_: result.text} | present({"sources": [source(memory) for memory, _ in result.memories]})
    return {
        **content,
        "count": len(result.memories),
        "total_tokens": result.total_tokens,
        "budget_used": round(result.budget_used, 4),
        **present({"reformulated": list(result.reformulated)}),
        **notice(meaning_notice(result.meaning_off), *result.notices),
    }


def tool(chance: RandomSource) -> Tool:
    return Tool(
        name="recall",
        description=(
            "Recall the few memories most relevant to what is being said, preferences first; empty if none is related. "
            "Call it when a conversation begins and whenever the past may matter. For exact words, dates or paging use "
            "search_memory; by id recall_memory."
        ),
        arguments=RecallArguments,
        answers=answer_schema(
            "count total_tokens budget_used",
            string="fragments prompt",
            array="memories sources",
            integer="count total_tokens",
            number="budget_used",
        ),
        run=partial(run, chance),
        audited=True,
        counts_recalls=True,
    )
