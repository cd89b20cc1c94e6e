"""The order of hits, and each once (spec H4)."""

from __future__ import annotations

from collections.abc import Iterable

from madeleine.memory.keyword_search import SearchHit

PREFIX = 100
"""Characters of the snippet that tell two hits apart."""


def deduplicated(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Of those with one source, id and beginning of the snippet the first, in the order they came."""
    found: dict[tuple[str, str, str], SearchHit] = {}
    for hit in hits:
        found.setdefault((hit.source, hit.id, hit.snippet[:PREFIX]), hit)
    return list(found.values())


def newest_first(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Equal times by id."""
    return sorted(hits, key=lambda hit: (-hit.position[0], hit.position[1]))
