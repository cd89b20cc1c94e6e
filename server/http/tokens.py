"""Bearer tokens of our own: `mdl_<id>_<secret>`, of which the ledger stores the id and the secret's hash.

The secret is 256 random bits, so one round of SHA-256 keeps it: there is nothing to guess (spec ruling 12).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import datetime
from typing import Protocol

from madeleine.memory.bearer_tokens import BearerTokenId, BearerTokenRecord
from madeleine.memory.model import BeingId, is_connectable_being

MADELEINE_TOKEN_PREFIX = "mdl_"
_MADELEINE_TOKEN_PATTERN = re.compile(r"mdl_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_BEING_NAME_PATTERN = re.compile(r"[^\x00-\x1f\ud800-\udfff]{1,200}")


class BearerTokenLedger(Protocol):
    """The tokens that were ever made. They are revoked, never removed: whose they were stays known."""

    async def find_by_id(self, id_: BearerTokenId) -> BearerTokenRecord | None:
        """Read the current state: another process may just have revoked the token."""

    async def has_tokens(self) -> bool:
        """Return whether a token was ever made."""


def generate_bearer_token() -> tuple[BearerTokenId, str, bytes]:
    """A new token's id, the text that its holder sends, and the hash of its secret. The text is stored nowhere."""
    id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return BearerTokenId(id_), f"{MADELEINE_TOKEN_PREFIX}{id_}_{secret}", hash_token_secret(secret)


def hash_token_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


async def find_valid_bearer_token(bearer: str, ledger: BearerTokenLedger, *, now: datetime) -> BearerTokenRecord | None:
    """Return None for a token that is not ours, or not valid now. The token's resource is not checked here."""
    match = _MADELEINE_TOKEN_PATTERN.fullmatch(bearer)
    if match is None:
        return None
    token = await ledger.find_by_id(BearerTokenId(match[1]))
    expected = token.secret_hash if token else bytes(32)
    is_secret = hmac.compare_digest(hash_token_secret(match[2]), expected)
    return token if token and is_secret and token.is_valid_at(now) else None


def valid_being_id_or_none(name: object) -> BeingId | None:
    """Return None unless `name` is a string of 1 to 200 characters without control characters, and not the name of what
    all beings share."""
    is_valid = isinstance(name, str) and _BEING_NAME_PATTERN.fullmatch(name) is not None and is_connectable_being(name)
    return BeingId(str(name)) if is_valid else None
