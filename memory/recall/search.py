"""Keyword search (spec P11, H2 to H4): no model, every word as it was written."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from memory.errors import InvalidInput
from memory.model import MemoryId
from memory.ports import Activation, ActivationLog, Hit, KeywordQuery, SearchLedger
from memory.scope import Scope

SNIPPET = 400
"""Characters of a hit's snippet at most (spec H3)."""
LIVING_HIT = 1
DEAD_HIT = 2

_TERM = re.compile(r'"([^"]+)"|(\S+)')


@dataclass(frozen=True, slots=True)
class Page:
    hits: tuple[Hit, ...]
    next_cursor: str = ""


class Search:
    """The use case. Living memories that are hit get +1 reactivation, dead ones +2."""

    def __init__(self, ledger: SearchLedger, activations: ActivationLog, *, now: Callable[[], datetime]) -> None:
        self._ledger = ledger
        self._activations = activations
        self._now = now

    async def __call__(self, scope: Scope, query: KeywordQuery, *, cursor: str = "") -> Page:
        """Raises `InvalidInput` for a cursor that is not of this query."""
        after = read_cursor(cursor, query) if cursor else None
        found = await self._ledger.search(scope, replace(query, limit=query.limit + 1, after=after))
        hits = found[: query.limit]
        now = self._now()
        self._activations.add(
            scope,
            [
                Activation(MemoryId(hit.id), DEAD_HIT if hit.status == "dead" else LIVING_HIT, now)
                for hit in hits
                if hit.source == "memories"
            ],
        )
        more = len(found) > query.limit
        return Page(tuple(deduplicated(hits)), make_cursor(hits[-1].position, query) if more else "")


def terms_of(text: str) -> tuple[str, ...]:
    """Words at white space, `"a phrase"` as one; compared without regard to case or width. Each once."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(dict.fromkeys(phrase or word for phrase, word in _TERM.findall(folded)))


def deduplicated(hits: list[Hit]) -> list[Hit]:
    """Each (source, id, beginning of the snippet) once (spec H4)."""
    return list({(hit.source, hit.id, hit.text[:SNIPPET]): hit for hit in hits}.values())


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
