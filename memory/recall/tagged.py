"""Search by what a message is about (spec H1 to H4): tags → expand → one search over the sources → newest first.

Of all that holds a tag of the message, or has a theme that stands beside one on the being's memories, the best are
taken into a pool; what is in the pool is put in order of time and trimmed. Tags that few texts hold weigh more: without
that, the newest texts with the commonest word would be all that ever came.
"""

from __future__ import annotations

from dataclasses import replace

from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource, Stemmer, TagQuery
from madeleine.memory.recall.ports import TagLedger
from madeleine.memory.rules.searching.excerpt import excerpt
from madeleine.memory.rules.searching.hits import deduplicated, newest_first
from madeleine.memory.rules.searching.tag_forms import place_of
from madeleine.memory.rules.searching.tag_ranking import POOL, pooled, ranked
from madeleine.memory.rules.searching.tags import related_themes, tags_of
from madeleine.memory.scope import Scope
from madeleine.memory.text.folding import fold

RECENT = 5_000
"""Memories whose themes are looked through for those that stand together."""
MOST_RELATED = 8
NEWEST = 50_000
"""Texts of each source that are looked through. A context is built each turn: what it costs must have a bound, whatever
the being has lived through."""


class MessageSearch:
    """The use case. It counts no reactivation: what is put into a context at each turn has not come to mind."""

    def __init__(self, ledger: TagLedger, stem: Stemmer) -> None:
        self._ledger = ledger
        self._stem = stem

    async def __call__(
        self, scope: Scope, message: str, *, limit: int, include_chat: bool, include_diary: bool = True
    ) -> tuple[SearchHit, ...]:
        """From memories that have not faded and, if asked, the diary and conversations; newest first, at most `limit`.
        What was said in the very words of the message is left out."""
        wanted: dict[SearchSource, bool] = {"memories": True, "diary": include_diary, "chat": include_chat}
        sources = tuple(source for source, asked in wanted.items() if asked)
        query = KeywordQuery(terms=(), sources=sources, include_dead=False, limit=limit)
        return await self.about(scope, message, query)

    async def about(self, scope: Scope, message: str, query: KeywordQuery) -> tuple[SearchHit, ...]:
        """Within the filters and sources of `query`, at most `query.limit`; its terms and position are not looked
        at. Nothing for a message that tells of nothing."""
        tags = tags_of(message, self._stem)
        if not tags:
            return ()
        beside = await self._ledger.themes_beside(scope, tags, recent=RECENT)
        related = related_themes(beside, tags, most=MOST_RELATED)
        most = POOL * query.limit + 1  # the message itself may be among them
        matches = await self._ledger.tagged(scope, TagQuery(tags, related, replace(query, limit=most), NEWEST))
        best = ranked(matches, len(tags), most)
        hits = {(hit.source, hit.id): hit for hit in await self._ledger.hits(scope, [place for place, _ in best])}
        found = [(hits[place], weight) for place, weight in best if place in hits]
        others = [(hit, weight) for hit, weight in found if not _is(hit, message)]
        looked_for = place_of(tags)
        pool = newest_first(pooled(others, query.limit))
        shown = (replace(hit, snippet=excerpt(hit.text, looked_for)) for hit in pool)
        return tuple(deduplicated(shown)[: query.limit])


def _is(hit: SearchHit, message: str) -> bool:
    """Said in the very words of the message: most likely it itself, already observed."""
    return hit.source == "chat" and fold(hit.text).split() == fold(message).split()
