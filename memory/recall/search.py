"""Keyword search (spec P11, H2 to H4): no model, every word as it was written."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from madeleine.memory.errors import InvalidInput
from madeleine.memory.keyword_search import KeywordQuery, SearchHit
from madeleine.memory.model import MemoryId
from madeleine.memory.recall.ports import Activation, ActivationLog, SearchLedger
from madeleine.memory.recall.tagged import MessageSearch
from madeleine.memory.rules.searching.excerpt import excerpt, first_of
from madeleine.memory.rules.searching.hits import deduplicated
from madeleine.memory.scope import Scope

LIVING_HIT = 1
DEAD_HIT = 2

_TERM = re.compile(r'"([^"]+)"|(\S+)')


@dataclass(frozen=True, slots=True)
class Page:
    hits: tuple[SearchHit, ...]
    next_cursor: str = ""


class Search:
    """The use case. Living memories that are hit get +1 reactivation, dead ones +2; other sources are not counted."""

    def __init__(
        self,
        ledger: SearchLedger,
        activations: ActivationLog,
        *,
        by_message: MessageSearch,
        now: Callable[[], datetime],
    ) -> None:
        self._ledger = ledger
        self._activations = activations
        self._by_message = by_message
        self._now = now

    async def __call__(self, scope: Scope, query: KeywordQuery, *, cursor: str = "") -> Page:
        """Raises `InvalidInput` for a cursor that is not of this query."""
        after = read_cursor(cursor, query) if cursor else None
        found = await self._one_more(scope, replace(query, after=after))
        hits = found[: query.limit]
        self._activate(scope, hits)
        return Page(tuple(hits), make_cursor(hits[-1].position, query) if len(found) > query.limit else "")

    async def about(self, scope: Scope, message: str, query: KeywordQuery) -> Page:
        """One page, by the tags of a message (`memory.recall.tagged`)."""
        hits = await self._by_message.about(scope, message, query)
        self._activate(scope, hits)
        return Page(hits)

    async def _one_more(self, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
        """Up to one hit more than a page has, to know whether another page follows. What a ledger gives twice is left
        out, and the page filled up from where it ended (spec H2, H4)."""
        place = first_of(query.terms)
        found: list[SearchHit] = []
        size = query.limit + 1
        while len(found) < size:
            more = await self._ledger.search(scope, replace(query, limit=size))
            found = deduplicated([*found, *(replace(hit, snippet=excerpt(hit.text, place)) for hit in more)])
            if len(more) < size:
                break
            query = replace(query, after=more[-1].position)
        return found[:size]

    def _activate(self, scope: Scope, hits: Iterable[SearchHit]) -> None:
        now = self._now()
        self._activations.add(
            scope,
            [
                Activation(MemoryId(hit.id), DEAD_HIT if hit.status == "dead" else LIVING_HIT, now)
                for hit in hits
                if hit.source == "memories"
            ],
        )


def terms_of(text: str) -> tuple[str, ...]:
    """Words at white space, `"a phrase"` as one; compared without regard to case or width. Each once."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(dict.fromkeys(phrase or word for phrase, word in _TERM.findall(folded)))


def _of_query(query: KeywordQuery) -> str:
    return hashlib.sha256(repr(replace(query, after=None, limit=0)).encode()).hexdigest()[:12]


def make_cursor(position: tuple[int, str], query: KeywordQuery) -> str:
    return base64.urlsafe_b64encode(json.dumps([*position, _of_query(query)]).encode()).decode()


def read_cursor(cursor: str, query: KeywordQuery) -> tuple[int, str]:
    try:
        micros, id_, of_query = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        position = (int(micros), str(id_))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidInput("cursor is not one that search_memory returned; leave it out to start again.") from error
    if of_query != _of_query(query):
        raise InvalidInput("cursor belongs to another search; repeat the arguments it came from, or leave it out.")
    return position
