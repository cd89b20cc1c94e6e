"""What the being knows outside its memories: its profile, observed messages, open notes (ruling 19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource, SearchTagFromMessage
from madeleine.memory.model import Scope
from madeleine.memory.profile import ProfileEntry
from madeleine.memory.recall.search import SearchByTagsFromMessage
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.searching import extract_most_specific_search_tags, text_has_message_tag
from madeleine.memory.text.normalization import fold_text

MIN_MATCHED_QUERY_TAG_SHARE = 0.5
"""Share of the query's tags that a text holds, as of memories that are near (`MatchThresholds.near_words`)."""
MAX_NON_MEMORY_TEXTS_COMPARED = 20
MAX_OTHER_PROJECTS_NAMED = 8
NON_MEMORY_SEARCH_SOURCES: tuple[SearchSource, ...] = ("chat", "notes")


TextT = TypeVar("TextT")


class ProfileAndProjectLedger(Protocol):
    async def profile_entries(self, scope: Scope) -> list[ProfileEntry]:
        """All entries; those of preferences that are memories have a `memory_id`."""

    async def projects(self, scope: Scope, *, limit: int) -> list[str]:
        """The names of the being's projects that have memories, in order."""


@dataclass(frozen=True, slots=True)
class NonMemoryMatches:
    """Entries and texts that hold at least half of a query's tags, those with most of them first, then the newest."""

    entries: tuple[ProfileEntry, ...] = ()
    hits: tuple[SearchHit, ...] = ()
    projects: tuple[str, ...] = ()
    """Of which nothing was searched, as the caller works in none (spec O2)."""

    @property
    def ids(self) -> list[str]:
        return [*(entry.audit_id for entry in self.entries), *(hit.id for hit in self.hits)]


NO_NON_MEMORY_MATCHES = NonMemoryMatches()


@dataclass(frozen=True, eq=False)
class FindNonMemoryMatches:
    """The use case: for a query that no memory matches. Nothing is counted as recalled."""

    ledger: ProfileAndProjectLedger
    search_by_tags: SearchByTagsFromMessage

    async def __call__(self, scope: Scope, query: RecallQuery) -> NonMemoryMatches:
        """At most `query.limit` together, entries first. Nothing for a query with a filter that only memories have; the
        profile has no time. A message in the very words of the query is left out."""
        projects = tuple(await self.unsearched_project_names(scope))
        tags = extract_most_specific_search_tags(query.text, self.search_by_tags.stem)
        if query.categories or query.themes or query.as_of or not tags:
            return NonMemoryMatches(projects=projects)
        entries: list[tuple[float, ProfileEntry]] = []
        if not query.has_window:
            shown = (
                entry for entry in await self.ledger.profile_entries(scope) if entry.enabled and not entry.memory_id
            )
            entries = [(_share_of_tags_in_text(tags, f"{entry.name} {entry.value}"), entry) for entry in shown]
        texts = KeywordQuery(
            terms=(),
            sources=NON_MEMORY_SEARCH_SOURCES,
            since=query.since,
            until=query.until,
            limit=MAX_NON_MEMORY_TEXTS_COMPARED,
        )
        page = await self.search_by_tags.search_by_tags_of_message(scope, query.text, texts)
        hits = [(_share_of_tags_in_text(tags, " ".join((hit.text, *hit.actors))), hit) for hit in page.hits]
        near = [*_sufficient_matches_best_first(entries), *_sufficient_matches_best_first(hits)][: query.limit]
        return NonMemoryMatches(
            tuple(one for one in near if isinstance(one, ProfileEntry)),
            tuple(one for one in near if isinstance(one, SearchHit)),
            projects,
        )

    async def unsearched_project_names(self, scope: Scope) -> list[str]:
        """Names of the being's projects, at most eight, for a caller who works in none: what belongs to them was not
        searched. Empty for a caller who works in one."""
        return [] if scope.project else await self.ledger.projects(scope, limit=MAX_OTHER_PROJECTS_NAMED)


def _sufficient_matches_best_first(shares: Sequence[tuple[float, TextT]]) -> list[TextT]:
    near = [(share, text) for share, text in shares if share >= MIN_MATCHED_QUERY_TAG_SHARE]
    return [text for _, text in sorted(near, key=lambda one: -one[0])]


def _share_of_tags_in_text(tags: Sequence[SearchTagFromMessage], text: str) -> float:
    folded = fold_text(text)
    return sum(text_has_message_tag(folded, tag) for tag in tags) / len(tags)
