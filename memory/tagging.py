"""Searching by what a message is about (spec H1, H2): its tags, and what that needs of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from madeleine.memory.ports import Hit, KeywordQuery, SearchSource
from madeleine.memory.scope import Scope

Stem = Callable[[str], str]
"""The stem of a word; the word itself where it is of a language that the stemmer does not know."""

Position = tuple[int, str]
"""(microseconds since 1970, id): newest first, equal times by id."""
TagKind = Literal["words", "beginning", "part"]


@dataclass(frozen=True, slots=True)
class Tag:
    """A word or phrase that a message is about, folded, and how a text is known to hold it: `forms` stand in it as
    whole words, or a word begins with one (`beginning`), or, in scripts without spaces, one is a part of it (`part`).

    `anchor` is a part of every form: where it is not, none is.
    """

    text: str
    kind: TagKind
    forms: tuple[str, ...]
    anchor: str


@dataclass(frozen=True, slots=True)
class TagQuery:
    """Within the sources and the filters of `filters`; its terms and mode are not looked at. `related`: folded themes
    that stand beside the tags. `newest`: so many of each source are looked through."""

    tags: tuple[Tag, ...]
    related: tuple[str, ...]
    filters: KeywordQuery
    newest: int


@dataclass(frozen=True, slots=True)
class TagMatches:
    """What of one source holds any of the tags. `found` is (position, mask): `position` as of a `Hit`; bit `n` of
    `mask` is set where it holds tag `n`, the bit after the last where it has a related theme. Of each mask the newest
    only; `numbers` says how many there are of each."""

    source: SearchSource
    found: tuple[tuple[Position, int], ...]
    numbers: Mapping[int, int]


class TagLedger(Protocol):
    async def themes_beside(self, scope: Scope, tags: Sequence[Tag], *, recent: int) -> list[tuple[str, ...]]:
        """The themes of those of the `recent` newest memories that have a theme which holds one of the tags."""
        ...

    async def tagged(self, scope: Scope, query: TagQuery) -> list[TagMatches]:
        """What holds any of the tags, or has one of the related themes. Of each source and mask the newest
        `query.filters.limit`."""
        ...

    async def hits(self, scope: Scope, wanted: Sequence[tuple[SearchSource, str]]) -> list[Hit]:
        """By source and id, in any order; what is gone meanwhile is left out."""
        ...
