"""Why memories came to a recall, or did not: the parts that their scores are made of, or where they fell out.

All numbers are those of the recall itself (`RankingEvidence`); nothing is ranked a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import EmbeddingUnavailable
from madeleine.memory.index import RecallIndex
from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, Scope
from madeleine.memory.recall.evidence import RankingEvidence
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.recall.scoring import MIN_SCORE_SHARE_OF_WORDLESS_MATCH
from madeleine.memory.recall.selection import RankedCandidates, RecallQuery, RecallSelection
from madeleine.memory.rules.dynamics.truth import was_true_at
from madeleine.memory.rules.ranking.matching import CandidateSimilarities, MatchThresholds, RecallGateOutcome
from madeleine.memory.rules.ranking.score_parts import SHOWN_SCORE_DIGITS, round_score_parts
from madeleine.memory.text.normalization import fold_text

MAX_EXPLAINED_CANDIDATES = 10
"""The best ones, beside those that are asked for."""
NEWER_MEMORY_SCORE_PART_NAME = "newer"
"""Part of a score by which a memory stands before an older one that it probably makes untrue."""

MemoryRecallOutcome = Literal[
    "recalled", "near", "past the limit", "too long", "below the gate", "no candidate", "superseded", "retracted",
    "merged", "summarised", "faded", "filtered", "switched off", "unknown",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class QuerySimilarity:
    """The gate's measure of one candidate: `parts` add up to `value`. It matches from `needed` on."""

    parts: Mapping[str, float]
    value: float
    needed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryExplanation:
    """`reason`: a sentence, "" for a memory that was recalled by what its parts say. `rank`: among the memories, or the
    preferences, that match; 0 without a score. `parts` add up to `score`. `memory`: None where this being has none of
    that id."""

    id: MemoryId
    memory: Memory | None
    outcome: MemoryRecallOutcome
    reason: str = ""
    rank: int = 0
    score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    likeness: QuerySimilarity | None = None


@dataclass(frozen=True, slots=True)
class RecallExplanation:
    """`memories`: the best candidates, best first, then those that were asked for. `profile`: that has ranked them."""

    profile: str
    memories: tuple[MemoryExplanation, ...]


@dataclass(frozen=True, eq=False)
class RecallExplainer:
    """Explains one recall. `near`: what its answer names as near."""

    ledger: RecallLedger
    index: RecallIndex
    embedder: Embedder
    thresholds: MatchThresholds
    scope: Scope
    query: RecallQuery
    profile: str
    min_importance: float
    ranked: RankedCandidates
    selection: RecallSelection
    near: Sequence[MemoryId]

    async def explain(self, asked: Sequence[MemoryId]) -> RecallExplanation:
        best = [id_ for id_ in self._candidate_ids_best_first()[:MAX_EXPLAINED_CANDIDATES] if id_ not in asked]
        ids = [*best, *dict.fromkeys(asked)]
        memories = {memory.id: memory for memory in await self.ledger.memories_with_ids(self.scope, ids)}
        explained = [
            await self._explain_memory(id_, memories.get(id_)) for id_ in ids if id_ in memories or id_ in asked
        ]
        return RecallExplanation(self.profile, tuple(explained))

    def _candidate_ids_best_first(self) -> Sequence[MemoryId]:
        """What was ranked, then the other candidates by what they were measured by at the gate."""
        rest = [id_ for id_ in self.ranked.pool.ids if id_ not in self.ranked.scores]
        return [*self.ranked.ids, *sorted(rest, key=lambda id_: -self._margin_above_match_threshold(id_))]

    def _margin_above_match_threshold(self, id_: MemoryId) -> float:
        likeness = self._greatest_query_similarity(id_)
        return likeness.value - likeness.needed if likeness else 0.0

    async def _explain_memory(self, id_: MemoryId, memory: Memory | None) -> MemoryExplanation:
        if memory is None:
            return MemoryExplanation(id=id_, memory=None, outcome="unknown", reason="There is no such memory here.")
        outcome, reason = await self._recall_outcome_and_reason(memory)
        score = self.ranked.scores.get(id_, 0.0)
        parts, note = self._score_parts_and_note(id_) if score else ({}, "")
        return MemoryExplanation(
            id=id_,
            memory=memory,
            outcome=outcome,
            reason=" ".join(filter(None, (reason, note))),
            rank=self._rank_by_memory_id.get(id_, 0),
            score=score,
            parts=parts,
            likeness=self._greatest_query_similarity(id_),
        )

    # --- outcome --------------------------------------------------------------------------------------------------

    async def _recall_outcome_and_reason(self, memory: Memory) -> tuple[MemoryRecallOutcome, str]:
        id_ = memory.id
        if id_ in {shown.id for shown in self.selection.all_memories}:
            return "recalled", "Its text is cut to fit the token budget." if id_ in self.selection.truncated else ""
        if state := self._outcome_from_memory_state(memory):
            return state
        if id_ in self.near and id_ in self.ranked.of_named_days:
            return "near", f"{self._below_threshold_reason(id_)} It lies on a day that the query names."
        if id_ in self.near and id_ in self.ranked.near_misses:
            return "near", f"{self._below_threshold_reason(id_)} It is related, and named so."
        outcome, reason = await self._why_not_among_memories(memory)
        if id_ in self.near:
            return "near", f"{reason} It may tell what became of a memory that is shown."
        return outcome, reason

    async def _why_not_among_memories(self, memory: Memory) -> tuple[MemoryRecallOutcome, str]:
        id_ = memory.id
        if filtered := self._reason_for_filtering_out(memory):
            return "filtered", filtered
        if id_ in self.ranked.scores:
            return await self._outcome_of_match_left_out(memory)
        if id_ in self.ranked.pool.ids:
            return "below the gate", self._below_threshold_reason(id_)
        return "no candidate", await self._reason_for_not_being_candidate(memory)

    def _outcome_from_memory_state(self, memory: Memory) -> tuple[MemoryRecallOutcome, str] | None:
        """What of the memory itself keeps it from being recalled."""
        as_of = self.query.as_of
        if memory.absorbed_into is not None:
            return "merged", f"It was merged into {memory.absorbed_into}."
        if as_of is not None and not was_true_at(memory, as_of):
            return "superseded", f"It was not true at {as_of:%Y-%m-%d}."
        if as_of is None and memory.truth == "retracted":
            return "retracted", f"It was never true: {memory.retraction_reason}"
        if as_of is None and memory.truth == "superseded":
            rank = self._rank_by_memory_id.get(memory.superseded_by) if memory.superseded_by else None
            place = f", which has rank {rank}" if rank else ""
            return "superseded", f"{memory.superseded_by} says what is true now{place}."
        if memory.compressed and not self.query.include_compressed:
            return "summarised", f"{memory.compressed_into or 'A summary'} stands for it; include_compressed shows it."
        if as_of is None and memory.status not in LIVING_STATUSES:
            return "faded", "It has faded: search_memory finds it, and a patrol revives it once it was opened."
        return None

    def _reason_for_filtering_out(self, memory: Memory) -> str:
        query, themes = self.query, {fold_text(theme) for theme in memory.themes}
        missing = [theme for theme in query.themes if fold_text(theme) not in themes]
        if query.categories and memory.category not in query.categories:
            return f"Its category is {memory.category}."
        if missing:
            return f"It has no theme {missing[0]!r}."
        if memory.importance < self.min_importance:
            return f"Its importance is {memory.importance:.2f}, below {self.min_importance:.2f}."
        if query.has_window and memory.id not in self.ranked.pool.ids:
            return "Its dates lie outside of since and until, or others match better."
        return ""

    async def _outcome_of_match_left_out(self, memory: Memory) -> tuple[MemoryRecallOutcome, str]:
        id_ = memory.id
        if id_ in {long.id for long in self.selection.too_long}:
            return "too long", "It is too long for what is left of the token budget."
        is_preference = id_ in self.ranked.procedural
        if is_preference and not await self.ledger.preferences(
            self.scope, matching_ids=[id_], limit=1, include_standing=False
        ):
            return "switched off", "The preference is disabled in the profile."
        group = self.selection.preferences if is_preference else self.selection.memories
        least = min((self.ranked.scores.get(shown.id, 0.0) for shown in group), default=0.0)
        kind = "preferences" if is_preference else "memories"
        return "past the limit", (
            f"The answer holds {len(group)} {kind}, the last one with the score {least:.2f}; "
            "limit and token_budget decide how many."
        )

    def _below_threshold_reason(self, id_: MemoryId) -> str:
        likeness = self._greatest_query_similarity(id_)
        if likeness is None:
            return "It is like none of what was asked."
        if likeness.value >= likeness.needed:
            return (
                "It is alike enough, but holds no word of the query and scores less than "
                f"{MIN_SCORE_SHARE_OF_WORDLESS_MATCH:.0%} of the best match."
            )
        return (
            f"Its likeness lacks {likeness.needed - likeness.value:.2f} of the {likeness.needed:.2f} that are needed."
        )

    async def _reason_for_not_being_candidate(self, memory: Memory) -> str:
        """Of a memory that neither words nor meaning have brought near."""
        why = "Others share more words with the query, and others are nearer in meaning"
        pool = self.ranked.pool
        try:
            [vector] = await self.embedder.embed([self.query.text])
        except EmbeddingUnavailable:
            return f"{why}."
        [cosine] = await self.index.cosines([memory.id], vector)
        if not cosine:
            return f"{why}; it has no vector yet."
        known = pool.cosine[pool.cosine != 0]
        last = f"; that of the last candidate is {known.min():.2f}" if len(known) else ""
        return f"{why}: its cosine is {cosine:.2f}{last}."

    # --- numbers --------------------------------------------------------------------------------------------------

    @cached_property
    def _ranking_evidence(self) -> RankingEvidence:
        return self.ranked.evidence or RankingEvidence(gates=())

    @cached_property
    def _rank_by_memory_id(self) -> Mapping[MemoryId, int]:
        ranks: dict[MemoryId, int] = {}
        for group in (True, False):
            ids = [id_ for id_ in self.ranked.ids if (id_ in self.ranked.procedural) is group]
            ranks |= {id_: rank for rank, id_ in enumerate(ids, start=1)}
        return ranks

    @cached_property
    def _scored_position_by_shown_id(self) -> Mapping[MemoryId, int]:
        """Of each version that is shown the place, among the scored ones, of the candidate that it is shown for."""
        evidence, ids = self._ranking_evidence, self.ranked.pool.ids
        places: dict[MemoryId, int] = {}
        scores = evidence.scored.scores if evidence.scored else np.zeros(0)
        for place in np.argsort(-scores, kind="stable"):
            candidate = ids[evidence.positions[place]]
            if (shown := evidence.shown_for.get(candidate, candidate)) is not None:
                places.setdefault(shown, int(place))
        return places

    def _score_parts_and_note(self, id_: MemoryId) -> tuple[dict[str, float], str]:
        """The parts that add up to the score, and what else there is to say of it."""
        evidence, score, note = self._ranking_evidence, self.ranked.scores[id_], ""
        parts: dict[str, float] = {}
        if evidence.scored is not None and id_ in self._scored_position_by_shown_id:
            place = self._scored_position_by_shown_id[id_]
            parts = evidence.scored.score_parts_at(place)
            if (candidate := self.ranked.pool.ids[evidence.positions[place]]) != id_:
                note = f"It is shown for {candidate}, an earlier version."
        rest = score - sum(parts.values())
        if older := evidence.lifted.get(id_):
            note = f"It was told later than {older}, and probably says what became of it."
        if abs(rest) > 10**-SHOWN_SCORE_DIGITS:
            parts[self.ranked.rescored_by or NEWER_MEMORY_SCORE_PART_NAME] = rest
        return round_score_parts(parts, score), note

    def _greatest_query_similarity(self, id_: MemoryId) -> QuerySimilarity | None:
        """The greatest that a gate has measured; None for no candidate, and where a filter decides."""
        pool = self.ranked.pool
        if id_ not in pool.ids:
            return None
        at = pool.ids.index(id_)
        procedural = pool.features[at].category == "procedural"
        measured = [
            one
            for gate in self._ranking_evidence.gates
            if (one := self._query_similarity_at_gate(gate, at, procedural=procedural))
        ]
        return max(measured, key=lambda likeness: likeness.value - likeness.needed, default=None)

    def _query_similarity_at_gate(
        self, gate: RecallGateOutcome, at: int, *, procedural: bool
    ) -> QuerySimilarity | None:
        """Of a preference that to its situation; beside a match less is needed, and unknown words take nothing away."""
        likeness, thresholds = gate.likeness, self.thresholds
        if likeness is None:
            return None
        beside_match = bool((likeness.value >= likeness.needed).any())
        if procedural and gate.situation is not None:
            return _query_similarity_at_position(gate.situation, at, thresholds.likeness, with_unknown=False)
        if beside_match and likeness.value[at] < likeness.needed[at]:
            needed = thresholds.likeness - thresholds.companions
            return _query_similarity_at_position(likeness, at, needed, with_unknown=False)
        return _query_similarity_at_position(likeness, at, float(likeness.needed[at]), with_unknown=True)


def _query_similarity_at_position(
    likeness: CandidateSimilarities, at: int, needed: float, *, with_unknown: bool
) -> QuerySimilarity:
    value, penalty, words = (float(one[at]) for one in (likeness.value, likeness.penalty, likeness.in_words))
    parts = {"meaning": value + penalty - words, "words": words, "unknown_words": -penalty if with_unknown else 0.0}
    total = round(sum(parts.values()), SHOWN_SCORE_DIGITS)
    return QuerySimilarity(round_score_parts(parts, total), total, round(needed, SHOWN_SCORE_DIGITS))
