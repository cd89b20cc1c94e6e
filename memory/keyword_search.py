"""Keyword and tag search: queries and hits (spec P11, H1 to H4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from madeleine.memory.model import (
    Category,
    MemoryStatus,
    Provenance,
    TruthStatus,
    short_id_of_memory_number,
    short_id_of_non_memory,
)

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
    include_retracted: bool = False
    within_words: bool = True
    """Whether a term counts that stands within a word alone ("Ines" within "lines"), of scripts with spaces."""
    as_of: datetime | None = None
    """What was true then; None for what is true now, found by any of its versions (ruling 14), or of a window of time
    for the latest version that lies in it (`rules.dynamics.windows`)."""
    limit: int = 10
    after: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """spec H3, with provenance. `position` orders hits: (microseconds since 1970, id), newest first. `snippet`: at most
    400 characters of the text around the match; a ledger leaves it empty. The id of a diary entry is its date.
    `number`, `lesson`, `truth`, `since`, `until`, `before`: of a memory; `when`: the day of a memory or a diary entry.
    `matched`: the version of a memory that holds the terms, where neither its own text nor `before` does.
    `further_texts`: parts of a memory that are searched and not in `text`."""

    source: SearchSource
    id: str
    timestamp: datetime
    text: str
    stored_at: datetime
    provenance: Provenance
    actors: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()
    status: MemoryStatus | None = None
    snippet: str = ""
    further_texts: tuple[str, ...] = ()
    number: int = 0
    when: str = ""
    lesson: str = ""
    truth: TruthStatus = "current"
    since: str = ""
    before: str = ""
    until: str = ""
    matched: str = ""
    position: tuple[int, str]

    @property
    def short_id(self) -> str:
        return short_id_of_memory_number(self.number) if self.number else short_id_of_non_memory(self.id)


Stemmer = Callable[[str], str]
"""Returns the stem of a word; the word itself in languages that the stemmer does not know."""


HitTimeAndId = tuple[int, str]
"""(microseconds since 1970, id): newest first, equal times by id."""


WholeWordPrefixOrSubstringMode = Literal["words", "beginning", "part"]


@dataclass(frozen=True, slots=True)
class SearchTagFromMessage:
    """A folded word or phrase of a message, and how texts match it: a form is a whole word (`words`), the beginning of
    a word (`beginning`) or, in scripts without spaces, any part of the text (`part`).

    `anchor` is a substring of every form: a text without it has no match.
    """

    text: str
    kind: WholeWordPrefixOrSubstringMode
    forms: tuple[str, ...]
    anchor: str


@dataclass(frozen=True, slots=True)
class TagSearchQuery:
    """A search within the sources and filters of `filters`, whose terms and mode are ignored. `related`: folded themes
    that co-occur with the tags. `max_texts`: the newest texts of each source that are searched."""

    tags: tuple[SearchTagFromMessage, ...]
    related: tuple[str, ...]
    filters: KeywordQuery
    max_texts: int


@dataclass(frozen=True, slots=True)
class TagMatchesInOneSource:
    """The texts of one source that hold any of the tags. Bit `n` of a text's mask is set where it holds tag `n`, the
    bit after the last where it has a related theme. `newest` are (position, mask) of the newest texts of each mask,
    `counts` the number of all texts by mask."""

    source: SearchSource
    newest: tuple[tuple[HitTimeAndId, int], ...]
    counts: Mapping[int, int]
