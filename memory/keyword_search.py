"""Keyword and tag search: queries and hits (spec P11, H1 to H4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from madeleine.memory.model import Category, Provenance, Status

SearchSource = Literal["memories", "diary", "chat", "notes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordQuery:
    """spec P11 and H1 to H4. `terms` are casefolded. `after` is the position of the last hit of the page before."""

    terms: tuple[str, ...]
    mode: Literal["or", "and"] = "or"
    themes: tuple[str, ...] = ()
    categories: tuple[Category, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    sources: tuple[SearchSource, ...] = ("memories", "diary", "chat", "notes")
    include_dead: bool = True
    include_compressed: bool = False
    limit: int = 10
    after: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """spec H3, with where it comes from. `position` orders hits: (microseconds since 1970, id), newest first. `snippet`
    is what is shown of the text, at most 400 characters, the place where the words were found: a ledger leaves it
    empty. The id of a diary entry is its date."""

    source: SearchSource
    id: str
    timestamp: datetime
    text: str
    stored_at: datetime
    provenance: Provenance
    actors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    status: Status | None = None
    snippet: str = ""
    position: tuple[int, str]


Stemmer = Callable[[str], str]
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
    """What of one source holds any of the tags. `found` is (position, mask): `position` as of a `SearchHit`; bit `n` of
    `mask` is set where it holds tag `n`, the bit after the last where it has a related theme. Of each mask the newest
    only; `numbers` says how many there are of each."""

    source: SearchSource
    found: tuple[tuple[Position, int], ...]
    numbers: Mapping[int, int]
