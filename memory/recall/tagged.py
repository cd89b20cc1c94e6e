"""Search by what a message is about (spec H1 to H4): tags → expand → one search over the sources → newest first."""

from __future__ import annotations

from memory.ports import Hit
from memory.scope import Scope
from memory.tagging import Stem, TagLedger


class MessageSearch:
    """The use case. It counts no reactivation: a context block is built each turn."""

    def __init__(self, ledger: TagLedger, stem: Stem) -> None:
        self._ledger = ledger
        self._stem = stem

    async def __call__(self, scope: Scope, message: str, *, limit: int, include_chat: bool) -> tuple[Hit, ...]:
        raise NotImplementedError
