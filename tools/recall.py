"""`recall`: what comes to mind (spec P9, L2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from memory.model import Category
from memory.ports import RandomSource
from memory.recall.recall import Query, Recalled
from memory.rules.fragments import fragments
from memory.rules.prompt import prompt_block
from tools.arguments import Arguments, Emotions, LongText
from tools.replies import brief, meaning_notice, present, source
from tools.tool import COUNT, NUMBER, OBJECTS, TEXT, Call, Run, Tool, answer_schema


class RecallArguments(Arguments):
    query: Annotated[LongText, Field(description="The moment, question or message.")]
    limit: Annotated[int, Field(ge=1, le=50)] = 3
    categories: Annotated[list[Category], Field(max_length=5, description="Only these.")] = []
    emotions: Annotated[Emotions, Field(description="Felt now: memories that share them rise.")] = []
    token_budget: Annotated[int, Field(ge=1, le=100_000)] = 2000
    format: Annotated[
        Literal["fragments", "memories", "prompt"],
        Field(
            description="fragments: a diffuse impression, shuffled; memories: a precise list with ids; prompt: a "
            "<memory> block."
        ),
    ] = "fragments"


def recall_with(chance: RandomSource) -> Run:
    async def run(call: Call, arguments: RecallArguments) -> dict[str, Any]:
        recalled = await call.use.recall(
            call.scope,
            Query(
                text=arguments.query,
                limit=arguments.limit,
                token_budget=arguments.token_budget,
                categories=tuple(arguments.categories),
                emotions=tuple(arguments.emotions),
            ),
        )
        return {
            arguments.format: SHAPES[arguments.format](recalled, chance),
            **(present({"sources": sources(recalled)}) if arguments.format != "memories" else {}),
            "count": len(recalled.memories),
            "total_tokens": recalled.total_tokens,
            "budget_used": round(recalled.budget_used, 4),
            **meaning_notice(recalled.meaning_off),
        }

    return run


def sources(recalled: Recalled) -> list[dict[str, Any]]:
    """Of fragments and prompts, whose text does not name them. A prompt's are in the order of its lines."""
    return [source(memory) for memory, _ in recalled.memories]


Shape = Callable[[Recalled, RandomSource], Any]
SHAPES: dict[str, Shape] = {
    "fragments": lambda recalled, chance: fragments((memory for memory, _ in recalled.memories), chance),
    "memories": lambda recalled, chance: [brief(memory, score) for memory, score in recalled.memories],
    "prompt": lambda recalled, chance: prompt_block(memory for memory, _ in recalled.memories),
}


def tool(chance: RandomSource) -> Tool:
    return Tool(
        name="recall",
        description=(
            "What comes to mind: the few memories nearest in meaning and words to what is being said. Use it at the "
            "start of a conversation and whenever the past may matter. If nothing related is remembered it is "
            "empty. Recalling keeps memories alive. For exact words, dates or paging use search_memory; whole "
            "memories by id: recall_memory."
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
