"""Bearer tokens as the server stores them; the secret part is known to the holder alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from madeleine.memory.model import BeingId, Role

BearerTokenId = NewType("BearerTokenId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerTokenRecord:
    """`resource` is the URL of the one server that takes it (RFC 8707)."""

    id: BearerTokenId
    secret_hash: bytes
    """SHA-256 of the secret part, 32 bytes."""
    being_id: BeingId
    role: Role
    read_only: bool
    resource: str
    name: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid_at(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
