"""Deduplication and order of hits (spec H4)."""

from __future__ import annotations

from collections.abc import Iterable

from madeleine.memory.keyword_search import SearchHit

PREFIX_CHARS = 100
"""Beginning of the snippet that tells two hits apart."""


def deduplicated(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Keep the first of the hits with the same source, id and beginning of the snippet, in the given order."""
    unique: dict[tuple[str, str, str], SearchHit] = {}
    for hit in hits:
        unique.setdefault((hit.source, hit.id, hit.snippet[:PREFIX_CHARS]), hit)
    return list(unique.values())


def newest_first(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Sort by time, equal times by id."""
    return sorted(hits, key=lambda hit: (-hit.position[0], hit.position[1]))
