"""What passes between the parts of a recall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from madeleine.memory.candidates import CandidatePool
from madeleine.memory.model import Category, Emotion, Memory, MemoryId
from madeleine.memory.rules.ranking.profiles import RankingProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """`themes`: only memories with all of these. `ranking` None: the configured profile."""

    text: str
    limit: int = 3
    token_budget: int = 2000
    categories: tuple[Category, ...] = ()
    themes: tuple[str, ...] = ()
    emotions: tuple[Emotion, ...] = ()
    ranking: RankingProfile | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """The matches of a query, best first, before any limit. `notices`: what could not be done, in sentences."""

    ids: tuple[MemoryId, ...]
    scores: tuple[float, ...]
    tokens: tuple[int, ...]
    """Of all that a recall may say of each."""
    pool: CandidatePool
    meaning_off: str = ""
    notices: tuple[str, ...] = ()

    def score_of(self) -> Mapping[MemoryId, float]:
        return dict(zip(self.ids, self.scores, strict=True))


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Preferences first, each group best first; a preference that does not match has the score 0. `said`: the text that
    the budget was spent on, `total_tokens` of it; `budget_used` = total_tokens / token_budget. `meaning_off`: why only
    words were compared, or "". `reformulated`: the other words that the query was put in as well."""

    memories: tuple[tuple[Memory, float], ...]
    total_tokens: int
    budget_used: float
    meaning_off: str = ""
    said: str = ""
    notices: tuple[str, ...] = ()
    reformulated: tuple[str, ...] = ()
