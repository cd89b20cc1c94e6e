"""What checking bearer tokens needs of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from madeleine.memory.bearer_tokens import BearerToken, BearerTokenId


class TokenLedger(Protocol):
    """Tokens are revoked, never removed: whose they were stays known."""

    async def add(self, token: BearerToken) -> None:
        """Audited, as `revoke` is (spec O10)."""
        ...

    async def find(self, id_: BearerTokenId) -> BearerToken | None:
        """As it is now, also when another process has just revoked it."""
        ...

    async def all(self) -> Sequence[BearerToken]:
        """Oldest first, revoked and expired ones too."""
        ...

    async def any(self) -> bool:
        """Whether there ever was one."""
        ...

    async def revoke(self, id_: BearerTokenId, *, at: datetime) -> bool:
        """False if there is none of this id. Revoked again, it keeps its first moment."""
        ...
