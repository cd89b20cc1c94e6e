"""Settings of recall: what ranks, what is left out, and what may be asked besides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

Weight = Annotated[float, Field(ge=0, le=1)]


class RecallSettings(BaseModel):
    """The formulas stand in `memory.rules.ranking.profiles`."""

    ranking: Literal["blended", "rrf", "linear", "associative"] = "blended"
    """Of calls that choose none."""
    linear_relevance: Weight = 0.7
    linear_recency: Weight = 0.3
    linear_personal_boost: Weight = 0.1
    linear_minimum: Weight = 0.0
    """Candidates with a lower score are left out."""
    associative_similarity: Weight = 0.45
    associative_importance: Weight = 0.20
    associative_recency: Weight = 0.15
    associative_reinforcement: Weight = 0.10
    associative_emotion: Weight = 0.10
    recency_decay_per_hour: Annotated[float, Field(ge=0, le=1_000)] = 0.01
    recall_min_importance: Weight = 0.0
    recall_non_inferable_only: bool = False
    """Restrict recall to memories with the theme `non-inferable`."""
    reranker: Annotated[str, Field(max_length=1_000)] = ""
    """A cross-encoder that fastembed knows, or a directory that holds one; "" for none."""
    reranker_candidates: Annotated[int, Field(ge=1, le=100)] = 20
    reranker_seconds: Annotated[float, Field(gt=0, le=30)] = 2.0
    """A recall waits for it no longer."""
    recall_reformulation: bool = False
    """Let a language model put a query in other words that found too little."""
    recall_reformulation_rounds: Annotated[int, Field(ge=1, le=5)] = 1
    recall_reformulation_seconds: Annotated[float, Field(gt=0, le=120)] = 8.0
    """For all rounds together."""

    @field_validator("ranking", mode="before")
    @classmethod
    def _ranking_in_any_case(cls, name: object) -> object:
        return name.lower() if isinstance(name, str) else name
