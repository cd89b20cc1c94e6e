"""Why an exact search shows a hit whose own text does not hold the words: one of its versions does (ruling 14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from madeleine.memory.keyword_search import KeywordQuery, SearchHit
from madeleine.memory.model import Memory, MemoryId, Scope, memory_date
from madeleine.memory.recall.ports import KeywordSearchLedger
from madeleine.memory.rules.searching import (
    excerpt_around_match,
    folded_text_has_terms,
    make_first_match_position_finder,
)
from madeleine.memory.searched_texts import keyword_searchable_texts_of_memory
from madeleine.memory.text.normalization import FOLDED_FIELD_SEPARATOR, fold_text


def hit_holds_terms(hit: SearchHit, query: KeywordQuery) -> bool:
    """Whether what is shown of the hit, or is searched of it beside, holds the terms."""
    return _texts_hold_terms((hit.text, hit.when, hit.lesson, *hit.further_texts, *hit.themes), query)


async def with_matching_versions(
    ledger: KeywordSearchLedger, scope: Scope, hits: Sequence[SearchHit], query: KeywordQuery
) -> list[SearchHit]:
    """The hits; one of which neither the text nor `before` holds the terms names the latest version that does."""
    unexplained = [
        hit
        for hit in hits
        if hit.source == "memories" and query.terms and not hit_holds_terms(hit, query)
        if not _texts_hold_terms((hit.before,), query)
    ]
    if not unexplained:
        return list(hits)
    chains = await ledger.all_versions_by_memory_id(scope, [MemoryId(hit.id) for hit in unexplained])
    matched = {hit.id: _matching_version_text(hit, chains.get(MemoryId(hit.id), ()), query) for hit in unexplained}
    return [replace(hit, matched=matched.get(hit.id, "")) for hit in hits]


def _matching_version_text(hit: SearchHit, chain: Sequence[Memory], query: KeywordQuery) -> str:
    """Its id, its date and the part of its text that holds a term; "" where no other version does."""
    find = make_first_match_position_finder(query.terms)
    for version in reversed(chain):
        texts = (*keyword_searchable_texts_of_memory(version), *version.themes)
        if version.id != hit.id and _texts_hold_terms(texts, query):
            text = next((text for text in texts if find(fold_text(text)) >= 0), version.scene.action)
            return f"{version.short_id}, {memory_date(version)}: {excerpt_around_match(text, find)}"
    return ""


def _texts_hold_terms(texts: Sequence[str], query: KeywordQuery) -> bool:
    folded = FOLDED_FIELD_SEPARATOR.join(map(fold_text, texts))
    return folded_text_has_terms(
        folded, [fold_text(term) for term in query.terms], query.mode, within_words=query.within_words
    )
