"""Search by what a message is about (spec H1 to H4): tags → expand → one search over the sources → newest first.

Of all that holds a tag of the message, or has a theme that stands beside one on the being's memories, the best are
taken into a pool; what is in the pool is put in order of time and trimmed. Tags that few texts hold weigh more: without
that, the newest texts with the commonest word would be all that ever came.
"""

from __future__ import annotations

from dataclasses import replace

from memory.ports import Hit, KeywordQuery, SearchSource
from memory.rules.excerpt import excerpt
from memory.rules.folding import fold
from memory.rules.hits import deduplicated, newest_first
from memory.rules.tag_forms import place_of
from memory.rules.tag_ranking import POOL, pool
from memory.rules.tags import related_themes, tags_of
from memory.scope import Scope
from memory.tagging import Stem, TagLedger, TagQuery

RECENT = 5_000
"""Memories whose themes are looked through for those that stand together."""
MOST_RELATED = 8


class MessageSearch:
    """The use case. It counts no reactivation: what is put into a context at each turn has not come to mind."""

    def __init__(self, ledger: TagLedger, stem: Stem) -> None:
        self._ledger = ledger
        self._stem = stem

    async def __call__(self, scope: Scope, message: str, *, limit: int, include_chat: bool) -> tuple[Hit, ...]:
        """From memories that have not faded, the diary and, if asked, conversations; newest first, at most `limit`.
        What was said in the very words of the message is left out: it is most likely the message itself."""
        sources: tuple[SearchSource, ...] = ("memories", "diary", *(("chat",) if include_chat else ()))
        query = KeywordQuery(terms=(), sources=sources, include_dead=False, limit=limit)
        return await self.about(scope, message, query)

    async def about(self, scope: Scope, message: str, query: KeywordQuery) -> tuple[Hit, ...]:
        """Within the filters and sources of `query`, at most `query.limit`; its terms and position are not looked
        at. Nothing for a message that tells of nothing."""
        tags = tags_of(message, self._stem)
        if not tags:
            return ()
        beside = await self._ledger.themes_beside(scope, tags, recent=RECENT)
        related = related_themes(beside, tags, most=MOST_RELATED)
        size = query.limit + 1  # the message itself may be among them
        filters = replace(query, limit=POOL * size)
        matches = await self._ledger.tagged(scope, TagQuery(tags, related, filters))
        hits = await self._ledger.hits(scope, pool(matches, len(tags), size))
        itself = fold(message).split()
        place = place_of(tags)
        others = [
            replace(hit, snippet=excerpt(hit.text, place))
            for hit in hits
            if hit.source != "chat" or fold(hit.text).split() != itself
        ]
        return tuple(deduplicated(newest_first(others))[: query.limit])
