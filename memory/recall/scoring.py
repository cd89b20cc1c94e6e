"""Scores of the matches of a query, by a ranking profile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.index import CandidatePool
from madeleine.memory.model import MemoryId, Scope
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.recall.query_reading import closing_text_of_message
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.dynamics.windows import has_date_in_window
from madeleine.memory.rules.ranking.blended import (
    BlendedRankingWeights,
    analyse_query,
    asks_for_everything_of_a_kind,
    blended_ranking_scores,
    matching_emotion_shares,
)
from madeleine.memory.rules.ranking.matching import procedural_candidate_mask
from madeleine.memory.rules.ranking.profiles import (
    AllRankingProfileWeights,
    RankingProfile,
    candidate_similarities,
    evenly_falling_scores,
    linear_ranking_scores,
    scores_by_associative_ranking_profile,
)
from madeleine.memory.rules.ranking.score_parts import ScoredCandidates
from madeleine.memory.text.relative_dates import Days, first_and_last_moment_of_days

LIFT_BY_NAMED_DAYS = 0.5
"""Share of its score that a match gains that is dated to the days that the query names: it is what is asked for more
likely than not, unless it was told later."""
MIN_SCORE_SHARE_OF_WORDLESS_MATCH = 0.5
"""Share of the best score from which a match counts that holds no word of the query. Of 122 such below it among the
first three in small stores, and of 25 among the first ten in LoCoMo and BEAM, none was an answer (ADR 98)."""


def without_weak_companions(
    query: str, pool: CandidatePool, matching: NDArray[np.intp], scored: ScoredCandidates
) -> tuple[NDArray[np.intp], ScoredCandidates]:
    """Without the matches that hold no word of the query and score far below the best one. `matching`: positions of
    what `scored` scores. Preferences stay, what is dated to the days that the query names, and all that a list holds:
    that it is of the kind asked for is told in other words."""
    if asks_for_everything_of_a_kind(analyse_query(query)):
        return matching, scored
    is_preference = procedural_candidate_mask(pool)[matching]
    best = scored.scores[~is_preference].max(initial=0)
    is_strong = scored.scores >= MIN_SCORE_SHARE_OF_WORDLESS_MATCH * best
    is_dated = scored.parts["days"] > 0 if "days" in scored.parts else np.zeros(len(matching), np.bool_)
    kept = is_preference | is_strong | is_dated | pool.holds[matching].any(axis=1)
    return matching[kept], scored.restricted_to(kept)


async def with_matches_of_named_days_lifted(
    ledger: RecallLedger, scope: Scope, scored: ScoredCandidates, ids: Sequence[MemoryId], days: Days
) -> ScoredCandidates:
    """`ids`: of the candidates, in order (ADR 90)."""
    since, until = first_and_last_moment_of_days(days)
    matches = await ledger.memories_with_ids(scope, ids)
    dated_ids = {memory.id for memory in matches if has_date_in_window(memory, since, until)}
    is_dated = [id_ in dated_ids for id_ in ids]
    lift = np.where(is_dated, LIFT_BY_NAMED_DAYS * scored.scores, 0.0)
    return ScoredCandidates.from_score_parts({**scored.parts, "days": lift})


async def score_matches(
    ledger: RecallLedger,
    scope: Scope,
    query: RecallQuery,
    *,
    profile: RankingProfile,
    weights: BlendedRankingWeights,
    profiles: AllRankingProfileWeights,
    pool: CandidatePool,
    matching: NDArray[np.intp],
    trust: float,
    now: datetime,
) -> tuple[NDArray[np.intp], ScoredCandidates]:
    """Positions of the candidates to rank, and their scores."""
    emotions = frozenset(query.emotions)
    if profile == "blended":
        asked = closing_text_of_message(query.text) or query.text
        return matching, blended_ranking_scores(
            asked, pool, matching, dense_trust=trust, emotions=emotions, weights=weights
        )
    if profile == "rrf":
        return matching, evenly_falling_scores(len(matching))
    states = await ledger.ranking_state_by_memory_id(scope, [pool.ids[i] for i in matching])
    # Memories forgotten since they were indexed have no state.
    matching = matching[[pool.ids[i] in states for i in matching]]
    matching_states = [states[pool.ids[i]] for i in matching]
    near = candidate_similarities(pool, dense_trust=trust)[matching]
    if profile == "linear":
        enough, scored = linear_ranking_scores(
            near, matching_states, now=now, weights=profiles
        ).mask_and_candidates_with_min_score(profiles.linear.minimum)
        return matching[enough], scored
    shared = matching_emotion_shares([pool.features[i] for i in matching], emotions)
    return matching, scores_by_associative_ranking_profile(near, matching_states, shared, now=now, weights=profiles)
