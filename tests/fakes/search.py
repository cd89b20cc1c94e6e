"""`KeywordSearchLedger` in memory, over memories and notes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource
from madeleine.memory.model import (
    Memory,
    MemoryId,
    Note,
    Provenance,
    Scope,
    memory_date,
    scene_to_text,
    texts_omitted_from_scene_line,
    time_span_of_memory,
)
from madeleine.memory.rules.dynamics.future_dates import announced_time_span
from madeleine.memory.rules.dynamics.truth import end_of_superseded_version_text, version_start_date_text, was_true_at
from madeleine.memory.rules.searching import folded_text_has_terms, sort_hits_newest_first
from madeleine.memory.searched_texts import keyword_searchable_texts_of_memory
from madeleine.memory.text.normalization import FOLDED_FIELD_SEPARATOR, fold_text
from madeleine.storage.sql.database.mapping import microseconds_from_moment
from tests.fakes.store import Store


class InMemorySearch:
    """`KeywordSearchLedger` over memories and notes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def newest_matching_texts(self, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
        own = self._store.own(scope)
        steps = [(one.id, one.superseded_by) for one in own if one.superseded_by]
        if query.as_of is not None:  # the version of then may be an earlier one, too
            steps += [(later, earlier) for earlier, later in steps]
        found = {one.id for one in own if _memory_matches(one, query)}
        while further := {version for one, version in steps if one in found} - found:
            found |= further
        hits = [
            _memory_hit(one)
            for one in own
            if one.id in found and self._is_shown(scope, one, query)
            if _spans_in_window(one, query.since, query.until)
        ]
        if not query.themes and not query.categories:
            notes = self._store.patrols.state.notes.values()
            mine = [one for one in notes if one.being_id == scope.being_id]
            hits += [_note_hit(one) for one in mine if _note_matches(one, query)]
        hits = [one for one in hits if one.source in query.sources and _in_window(one, query)]
        return sort_hits_newest_first(hits)[: query.limit]

    def _is_shown(self, scope: Scope, memory: Memory, query: KeywordQuery) -> bool:
        if query.as_of is not None:
            return was_true_at(memory, query.as_of)
        if memory.truth != "superseded" or not (query.since or query.until):
            return memory.truth == "current" or (memory.truth == "retracted" and query.include_retracted)
        own = {one.id: one for one in self._store.own(scope)}
        later = memory
        while later.superseded_by in own:
            later = own[later.superseded_by]
            if _came_in_window(later, query):
                return False
        return _came_in_window(memory, query)

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        return {}

    async def recent_texts(self, scope: Scope, sources: Sequence[SearchSource], *, most: int) -> list[str]:
        texts: list[str] = []
        if "memories" in sources:
            own = sorted(self._store.own(scope), key=lambda one: one.happened_at, reverse=True)
            texts += [
                FOLDED_FIELD_SEPARATOR.join(map(fold_text, keyword_searchable_texts_of_memory(one)))
                for one in own[:most]
            ]
        if "notes" in sources:
            notes = [one for one in self._store.patrols.state.notes.values() if one.being_id == scope.being_id]
            notes.sort(key=lambda one: one.created_at, reverse=True)
            texts += [fold_text(one.content) for one in notes[:most]]
        return texts


def _in_span(span: tuple[datetime, datetime], query: KeywordQuery) -> bool:
    return not ((query.since and span[1] < query.since) or (query.until and span[0] > query.until))


def _in_window(hit: SearchHit, query: KeywordQuery) -> bool:
    if hit.source != "memories" and not _in_span((hit.timestamp, hit.timestamp), query):
        return False
    at, id_ = hit.position
    return query.after is None or at < query.after[0] or (at == query.after[0] and id_ > query.after[1])


def _holds_terms(query: KeywordQuery, text: str, themes: Sequence[str] = ()) -> bool:
    found = [
        folded_text_has_terms(text, [fold_text(term)], "and", within_words=query.within_words)
        or fold_text(term) in map(fold_text, themes)
        for term in query.terms
    ]
    return not found or (all(found) if query.mode == "and" else any(found))


def _memory_matches(memory: Memory, query: KeywordQuery) -> bool:
    return (
        _holds_terms(
            query,
            FOLDED_FIELD_SEPARATOR.join(map(fold_text, keyword_searchable_texts_of_memory(memory))),
            memory.themes,
        )
        and {*map(fold_text, query.themes)} <= {*map(fold_text, memory.themes)}
        and (not query.categories or memory.category in query.categories)
        and (query.include_dead or memory.status != "dead")
        and (query.include_compressed or not memory.compressed or memory.status == "dead")
    )


def _memory_hit(memory: Memory) -> SearchHit:
    return SearchHit(
        source="memories",
        id=memory.id,
        timestamp=memory.happened_at,
        text=scene_to_text(memory.scene, memory.feeling, dated=False),
        stored_at=memory.created_at,
        provenance=memory.provenance,
        actors=memory.scene.actors,
        further_texts=texts_omitted_from_scene_line(memory.scene),
        themes=memory.themes,
        number=memory.number,
        when=memory_date(memory),
        lesson=memory.lesson,
        status=memory.status,
        truth=memory.truth,
        since=version_start_date_text(memory),
        before=memory.before,
        until=end_of_superseded_version_text(memory),
        position=(microseconds_from_moment(memory.happened_at), memory.id),
    )


def _note_matches(note: Note, query: KeywordQuery) -> bool:
    return _holds_terms(query, fold_text(note.content)) and (note.type != "scene" or note.state != "done")


def _note_hit(note: Note) -> SearchHit:
    return SearchHit(
        source="notes",
        id=note.id,
        timestamp=note.created_at,
        text=note.content,
        stored_at=note.created_at,
        provenance=Provenance(tool="notes"),
        position=(microseconds_from_moment(note.created_at), note.id),
    )


def _came_in_window(memory: Memory, query: KeywordQuery) -> bool:
    """Whether a day in the window came before it was superseded."""
    came = (first for first, _ in _spans_in_window(memory, query.since, query.until))
    return any(memory.valid_until is None or first < memory.valid_until for first in came)


def _spans_in_window(memory: Memory, since: datetime | None, until: datetime | None) -> list[tuple[datetime, datetime]]:
    """From its first to its last day, and what its text announces, as the SQL has it."""
    spans = [time_span_of_memory(memory)]
    if announced := announced_time_span(memory):
        spans.append(announced)
    return [
        (first, last) for first, last in spans if (since is None or last >= since) and (until is None or first <= until)
    ]
