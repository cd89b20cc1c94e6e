"""Bearer tokens of our own: `mdl_<id>_<secret>`, of which the ledger knows the id and the secret's hash.

The secret is 256 random bits, so one round of SHA-256 keeps it: there is nothing to guess (spec ruling 12).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime

from madeleine.memory.bearer_tokens import BearerToken, BearerTokenId
from madeleine.memory.model import BeingId
from madeleine.memory.scope import Role
from madeleine.server.http.ports import TokenLedger

PREFIX = "mdl_"
_WRITTEN = re.compile(r"mdl_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_BEING = re.compile(r"[^\x00-\x1f\ud800-\udfff]{1,200}")


@dataclass(frozen=True, slots=True)
class Minted:
    token: BearerToken
    written: str = field(repr=False)
    """What the holder sends. It is nowhere else."""


def mint(
    being_id: BeingId,
    *,
    role: Role,
    read_only: bool,
    resource: str,
    name: str,
    expires_at: datetime | None,
    now: datetime,
) -> Minted:
    id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    token = BearerToken(
        id=BearerTokenId(id_),
        secret_hash=hashed(secret),
        being_id=being_id,
        role=role,
        read_only=read_only,
        resource=resource,
        name=name,
        created_at=now,
        expires_at=expires_at,
    )
    return Minted(token, f"{PREFIX}{id_}_{secret}")


def hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


async def recognised(written: str, ledger: TokenLedger, *, now: datetime) -> BearerToken | None:
    """The token if it is one of ours and valid now. For which resource, the caller has to ask."""
    found = _WRITTEN.fullmatch(written)
    if found is None:
        return None
    token = await ledger.find(BearerTokenId(found[1]))
    expected = token.secret_hash if token else bytes(32)
    same = hmac.compare_digest(hashed(found[2]), expected)
    return token if token and same and token.valid(now) else None


def being_of(name: object) -> BeingId | None:
    """None for what cannot be a being's name: 1 to 200 characters, none of them a control character."""
    return BeingId(name) if isinstance(name, str) and _BEING.fullmatch(name) else None
