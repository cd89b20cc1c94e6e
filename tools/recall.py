"""`recall`: what comes to mind (spec P9, L2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.model import Category
from madeleine.memory.ports import RandomSource
from madeleine.memory.recall.ranking import RecallQuery
from madeleine.memory.recall.recall import RecallResult
from madeleine.memory.rules.prompting.answer_formats import LIST_FORMAT, PROMPT_FORMAT, AnswerFormat, fragments_format
from madeleine.memory.rules.ranking.profiles import RankingProfile
from madeleine.tools.arguments import Arguments, Emotions, LongText, Short
from madeleine.tools.replies import brief, meaning_notice, notice, present, source
from madeleine.tools.tool import COUNT, NUMBER, OBJECTS, TEXT, Call, Run, Tool, answer_schema


class RecallArguments(Arguments):
    query: Annotated[LongText, Field(description="What is being said.")]
    limit: Annotated[int, Field(ge=1, le=50)] = 3
    categories: Annotated[list[Category], Field(max_length=5)] = []
    themes: Annotated[list[Short], Field(max_length=20, description="All of these.")] = []
    emotions: Annotated[Emotions, Field(description="Felt now.")] = []
    ranking: RankingProfile | None = None
    token_budget: Annotated[int, Field(ge=1, le=100_000)] = 2000
    format: Annotated[
        Literal["fragments", "memories", "prompt"],
        Field(description="fragments: shuffled; memories: with ids; prompt: <memory> block."),
    ] = "fragments"


def recall_with(chance: RandomSource) -> Run:
    async def run(call: Call, arguments: RecallArguments) -> dict[str, Any]:
        recalled = await call.use.recall(
            call.scope,
            RecallQuery(
                text=arguments.query,
                limit=arguments.limit,
                token_budget=arguments.token_budget,
                categories=tuple(arguments.categories),
                themes=tuple(arguments.themes),
                emotions=tuple(arguments.emotions),
                ranking=arguments.ranking,
            ),
            SAYINGS[arguments.format](chance),
            language=call.language,
        )
        return {
            **SHAPES[arguments.format](recalled),
            "count": len(recalled.memories),
            "total_tokens": recalled.total_tokens,
            "budget_used": round(recalled.budget_used, 4),
            **present({"reformulated": list(recalled.reformulated)}),
            **notice(*meaning_notice(recalled.meaning_off).values(), *recalled.notices),
        }

    return run


def sources(recalled: RecallResult) -> list[dict[str, Any]]:
    """Of fragments and prompts, whose text does not name them. A prompt's are in the order of its lines."""
    return [source(memory) for memory, _ in recalled.memories]


Shape = Callable[[RecallResult], dict[str, Any]]
SHAPES: dict[str, Shape] = {
    "fragments": lambda recalled: {"fragments": recalled.text, **present({"sources": sources(recalled)})},
    "memories": lambda recalled: {"memories": [brief(memory, score) for memory, score in recalled.memories]},
    "prompt": lambda recalled: {"prompt": recalled.text, **present({"sources": sources(recalled)})},
}
SAYINGS: dict[str, Callable[[RandomSource], AnswerFormat]] = {
    "fragments": fragments_format,
    "memories": lambda chance: LIST_FORMAT,
    "prompt": lambda chance: PROMPT_FORMAT,
}


def tool(chance: RandomSource) -> Tool:
    return Tool(
        name="recall",
        description=(
            "What comes to mind: the few memories nearest to what is being said, preferences first; empty if none is "
            "related. Use it when a conversation begins and when the past may matter. Exact words, dates, paging: "
            "search_memory; by id: recall_memory."
        ),
        arguments=RecallArguments,
        answers=answer_schema(
            ("count", "total_tokens", "budget_used"),
            fragments=TEXT,
            memories=OBJECTS,
            prompt=TEXT,
            sources=OBJECTS,
            count=COUNT,
            total_tokens=COUNT,
            budget_used=NUMBER,
        ),
        run=recall_with(chance),
        read_only=False,
        destructive=False,
        idempotent=False,
        only_counts=True,
    )
