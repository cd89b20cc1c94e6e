"""Search by the subject of a message (spec H1 to H4): tags, related themes, one search over the sources, newest first.

The best of all texts that hold a tag of the message, or a theme related to one, form a pool; the pool is sorted by time
and trimmed. Rare tags weigh more: otherwise the newest texts with the commonest word would be the only ones returned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource, Stemmer, TagQuery
from madeleine.memory.model import Scope
from madeleine.memory.recall.ports import TagLedger
from madeleine.memory.rules.searching.excerpt import excerpt
from madeleine.memory.rules.searching.hits import deduplicated, newest_first
from madeleine.memory.rules.searching.tag_forms import match_finder
from madeleine.memory.rules.searching.tag_ranking import POOL_FACTOR, best_matches, pooled
from madeleine.memory.rules.searching.tags import related_themes, tags_of
from madeleine.memory.text.folding import fold

THEME_MEMORIES = 5_000
"""Newest memories whose themes are examined for co-occurrence."""
MAX_RELATED_THEMES = 8
MAX_TEXTS = 50_000
"""Newest texts of each source that are searched. A context is built each turn, so its cost is bounded."""


@dataclass(frozen=True, eq=False)
class MessageSearch:
    """The use case. It counts no reactivation: a context, which is built each turn, is not a recall."""

    ledger: TagLedger
    stem: Stemmer

    async def __call__(
        self, scope: Scope, message: str, *, limit: int, include_chat: bool, include_diary: bool = True
    ) -> tuple[SearchHit, ...]:
        """Search living memories and, if wanted, the diary and conversations; newest first, at most `limit`. Chat
        messages identical to `message` are left out."""
        included: dict[SearchSource, bool] = {"memories": True, "diary": include_diary, "chat": include_chat}
        sources = tuple(source for source, include in included.items() if include)
        query = KeywordQuery(terms=(), sources=sources, include_dead=False, limit=limit)
        return await self.about(scope, message, query)

    async def about(self, scope: Scope, message: str, query: KeywordQuery) -> tuple[SearchHit, ...]:
        """Search within the filters and sources of `query`, at most `query.limit` hits; its terms and position are
        ignored. Empty for a message without tags."""
        tags = tags_of(message, self.stem)
        if not tags:
            return ()
        themes = await self.ledger.cooccurring_themes(scope, tags, recent=THEME_MEMORIES)
        related = related_themes(themes, tags, most=MAX_RELATED_THEMES)
        pool_size = POOL_FACTOR * query.limit + 1  # the message itself may be among them
        matches = await self.ledger.tagged(scope, TagQuery(tags, related, replace(query, limit=pool_size), MAX_TEXTS))
        best = best_matches(matches, len(tags), pool_size)
        hits = {(hit.source, hit.id): hit for hit in await self.ledger.hits(scope, [ref for ref, _ in best])}
        weighted = [(hits[ref], weight) for ref, weight in best if ref in hits]
        others = [(hit, weight) for hit, weight in weighted if not _is_message(hit, message)]
        find_match = match_finder(tags)
        pool = newest_first(pooled(others, query.limit))
        shown = (replace(hit, snippet=excerpt(hit.text, find_match)) for hit in pool)
        return tuple(deduplicated(shown)[: query.limit])


def _is_message(hit: SearchHit, message: str) -> bool:
    """True for a chat hit in the very words of the message: most likely the message itself, already observed."""
    return hit.source == "chat" and fold(hit.text).split() == fold(message).split()
