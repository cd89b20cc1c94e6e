"""Searching by what a message is about (spec H1, H2): its tags, and what that needs of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from memory.ports import Hit, KeywordQuery, SearchSource
from memory.scope import Scope

Stem = Callable[[str], str]
"""The stem of a word; the word itself where it is of a language that the stemmer does not know."""

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
class TagMatches:
    """What of one source holds any of the tags. A match is (position, seq, mask): `position` as of a `Hit`, `seq` where
    the ledger keeps it, and bit `n` of `mask` set where it holds tag `n`, the bit after the last where it has a related
    theme. Of each mask the newest only; `numbers` says how many there are of each."""

    source: SearchSource
    found: tuple[tuple[tuple[int, str], int, int], ...]
    numbers: dict[int, int]


class TagLedger(Protocol):
    async def themes_beside(self, scope: Scope, tags: Sequence[Tag], *, recent: int) -> list[tuple[str, ...]]:
        """The themes of those of the `recent` newest memories that have a theme which holds one of the tags."""
        ...

    async def tagged(
        self, scope: Scope, query: KeywordQuery, tags: Sequence[Tag], related: Sequence[str]
    ) -> list[TagMatches]:
        """What holds any of `tags`, or has one of the `related` themes, within the filters and sources of `query`; its
        terms, mode and position are not looked at. Of each source and mask the newest `query.limit`."""
        ...

    async def hits_at(self, scope: Scope, at: Sequence[tuple[SearchSource, int]]) -> list[Hit]:
        """What is kept at these places, as search shows it, in any order; what is gone meanwhile is left out."""
        ...
