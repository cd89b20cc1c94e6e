"""Query reformulation (spec O12): a language model judges whether the selected memories suffice and, if not, rewords
the query. Bounded in rounds, time and tokens; on any failure the best attempt so far stands."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

from madeleine.memory.errors import MadeleineError, StorageError
from madeleine.memory.language_model import LanguageModel, MeteredModel, ModelCallCost, ModelCostRecorder, Prompt
from madeleine.memory.model import Memory, RunId, Scope
from madeleine.memory.recall.rank_fusion import merge_rankings
from madeleine.memory.recall.selection import RankedCandidates, RecallQuery, RecallSelection
from madeleine.memory.rules.prompting import escape_tags_on_one_line, render_memory_line
from madeleine.memory.rules.storing.secrets import RedactText

logger = logging.getLogger(__name__)

MAX_SHOWN_MEMORIES, MAX_SHOWN_MEMORY_CHARS = 10, 300
"""Memories that the model is shown, and characters of each."""
MAX_QUERY_CHARS_SHOWN_TO_MODEL = 2_000
MAX_REWORDED_QUERY_CHARS = 500
MAX_RECALL_VERDICT_TOKENS = 300
RECALL_COST_RUN_ID = RunId("recall")
"""Takes the place of a patrol's run id in cost records."""

_SUFFICIENCY_CHECK_PROMPT_TEMPLATE = (Path(__file__).parent / "reformulation_prompt.txt").read_text("utf-8").rstrip()
RECALL_SUFFICIENCY_CHECK_PROMPT = _SUFFICIENCY_CHECK_PROMPT_TEMPLATE.format(
    max_query_chars=MAX_REWORDED_QUERY_CHARS - 200
)


class RecallSufficiencyVerdict(BaseModel, strict=True, extra="forbid", frozen=True, defer_build=True):
    # Bounds are not in the schema, where structured outputs know none; a docstring would go into it.
    sufficient: bool
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReformulationConfig:
    """`max_rounds`: rewordings tried at most, 0 for none; `seconds` for all of them together."""

    max_rounds: int = 0
    seconds: float = 8.0


@dataclass(frozen=True, slots=True)
class RecallAttempt:
    """`rewordings`: the queries tried beside the original one."""

    ranked: RankedCandidates
    selection: RecallSelection
    rewordings: tuple[str, ...] = ()


async def reformulate_query_until_sufficient(
    query: RecallQuery,
    first_attempt: RecallAttempt,
    model: MeteredModel,
    config: QueryReformulationConfig,
    *,
    rank: Callable[[RecallQuery], Awaitable[RankedCandidates]],
    select: Callable[[RankedCandidates], Awaitable[RecallSelection]],
    redact: RedactText,
) -> RecallAttempt:
    """Reword and search again until the memories suffice, the model has no new words, or a bound is reached."""
    best = first_attempt
    shown_query = redact(query.text).text
    try:
        async with asyncio.timeout(config.seconds):
            for _ in range(config.max_rounds):
                prompt = build_recall_verdict_prompt(shown_query, selected := best.selection.all_memories)
                judgement = await model.answer_prompt(prompt, RecallSufficiencyVerdict, lambda answer: answer)
                words = " ".join(judgement.query.split())[:MAX_REWORDED_QUERY_CHARS]
                tried = {text.casefold() for text in ("", query.text, *best.rewordings)}
                if (judgement.sufficient and selected) or words.casefold() in tried:
                    break
                ranked = merge_rankings(best.ranked, await rank(replace(query, text=words)))
                best = RecallAttempt(ranked, await select(ranked), (*best.rewordings, words))
    except TimeoutError:
        return _attempt_with_failure_notice(best, f"It took longer than {config.seconds:g} s.")
    except MadeleineError as error:
        return _attempt_with_failure_notice(best, str(error))
    return best


def metered_model_for_recall(
    language: LanguageModel, costs: ModelCostRecorder | None, scope: Scope, now: Callable[[], datetime]
) -> MeteredModel:
    """Record the cost of each call, if `costs` is given. Failing to record is logged and does not fail the recall."""

    async def record(spent: ModelCallCost) -> None:
        try:
            if costs is not None:
                await costs.record_cost(scope, RECALL_COST_RUN_ID, spent, at=now())
        except StorageError as error:
            logger.warning("recording the cost of a recall failed: %s", error)

    return MeteredModel(language, record)


def build_recall_verdict_prompt(query: str, memories: Sequence[Memory]) -> Prompt:
    lines = [render_memory_line(memory)[:MAX_SHOWN_MEMORY_CHARS] for memory in memories[:MAX_SHOWN_MEMORIES]]
    query_json = json.dumps(escape_tags_on_one_line(query[:MAX_QUERY_CHARS_SHOWN_TO_MODEL]), ensure_ascii=False)
    return Prompt(
        purpose="reformulate",
        system=RECALL_SUFFICIENCY_CHECK_PROMPT,
        text="\n".join([f"query: {query_json}", "<memory>", *lines, "</memory>"]),
        size="small",
        max_tokens=MAX_RECALL_VERDICT_TOKENS,
    )


def _attempt_with_failure_notice(attempt: RecallAttempt, reason: str) -> RecallAttempt:
    notice = f"The query was not reworded. {reason}"
    return replace(attempt, ranked=replace(attempt.ranked, notices=(*attempt.ranked.notices, notice)))
