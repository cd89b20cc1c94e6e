"""One search over memories, diary, conversations and notes (spec P11, H1 to H4): what was written, letter case aside.

What each filter does to each source: the window of time narrows all. `themes` narrows memories to those that have them
all, and the diary to days whose memories have them; messages and notes have none, and are left out. `categories`,
`include_dead` and `include_compressed` are the memories' own; categories leave the others out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from itertools import chain

from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource, Tag, TagMatches, TagQuery
from madeleine.memory.model import Scope
from madeleine.memory.rules.searching.hits import newest_first
from madeleine.storage.sql.database.dialect import as_list
from madeleine.storage.sql.database.repository import Repository
from madeleine.storage.sql.search import chat, diary, memories, notes, tagged
from madeleine.storage.sql.search.asked import binds, shape, together

_SOURCES = {"memories": memories.SOURCE, "chat": chat.SOURCE, "notes": notes.SOURCE}
"""But the diary, which is read and compared here."""


class SearchRepository(Repository):
    """`SearchLedger` and `TagLedger`."""

    async def search(self, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
        found = await together([self._search(scope, query, source) for source in _sources(query)])
        return newest_first(chain.from_iterable(found))[: query.limit]

    async def _search(self, scope: Scope, query: KeywordQuery, source: SearchSource) -> list[SearchHit]:
        if source == "diary":
            return await diary.search(self._database, scope, query)
        return await _SOURCES[source].search(self._database, shape(query), binds(scope, query))

    async def cooccurring_themes(self, scope: Scope, tags: Sequence[Tag], *, recent: int) -> list[tuple[str, ...]]:
        return await tagged.cooccurring_themes(self._database, scope, tags, recent)

    async def tagged(self, scope: Scope, query: TagQuery) -> list[TagMatches]:
        return await together(
            [tagged.matches(self._database, scope, query, source) for source in _sources(query.filters)]
        )

    async def hits(self, scope: Scope, wanted: Sequence[tuple[SearchSource, str]]) -> list[SearchHit]:
        found: list[Awaitable[list[SearchHit]]] = []
        for source in dict.fromkeys(source for source, _ in wanted):
            ids = [id_ for of, id_ in wanted if of == source]
            if source == "diary":
                found.append(diary.by_ids(self._database, scope, ids))
            else:
                found.append(_SOURCES[source].by_ids(self._database, {"being": scope.being_id, "ids": as_list(ids)}))
        return list(chain.from_iterable(await together(found)))


def _sources(query: KeywordQuery) -> list[SearchSource]:
    """Those that can have a hit."""
    return [source for source in dict.fromkeys(query.sources) if _can_match(source, query)]


def _can_match(source: SearchSource, query: KeywordQuery) -> bool:
    if source == "memories":
        return True
    return not query.categories and (source == "diary" or not query.themes)
