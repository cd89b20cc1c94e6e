"""Who looks at the page: links that open it once, and the cookies of open sessions. Kept in memory, by their hashes."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from madeleine.server.mcp.server import Caller

LOGIN_LINK_VALIDITY_SECONDS = 600.0
"""A link that nobody has opened is refused after that."""
WEB_UI_SESSION_SECONDS = 12 * 3600.0
MAX_WEB_UI_SESSIONS = 200
"""Beyond them the oldest ends."""


@dataclass(frozen=True, slots=True)
class WebUiSession:
    """`caller`: who `madeleine ui` was run by. None for a session over HTTP: whose memory it shows is asked of `bearer`
    at each request, so that it ends with its token."""

    caller: Caller | None = None
    bearer: str = field(default="", repr=False)


class _ExpiringSessions:
    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now = seconds, now
        self._by_hash: OrderedDict[str, tuple[float, WebUiSession]] = OrderedDict()

    def add(self, session: WebUiSession) -> str:
        secret = secrets.token_urlsafe(32)
        self._by_hash[_hash_session_secret(secret)] = self._now() + self._seconds, session
        while len(self._by_hash) > MAX_WEB_UI_SESSIONS:
            self._by_hash.popitem(last=False)
        return secret

    def find(self, secret: str) -> WebUiSession | None:
        until, session = self._by_hash.get(_hash_session_secret(secret), (0.0, None))
        return session if until > self._now() else None

    def take(self, secret: str) -> WebUiSession | None:
        session = self.find(secret)
        self._by_hash.pop(_hash_session_secret(secret), None)
        return session


class WebUiSessions:
    """256 random bits name each link and each session, so one round of SHA-256 keeps them."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._links = _ExpiringSessions(LOGIN_LINK_VALIDITY_SECONDS, now)
        self._sessions = _ExpiringSessions(WEB_UI_SESSION_SECONDS, now)

    def new_link_token(self, caller: Caller) -> str:
        return self._links.add(WebUiSession(caller))

    def redeem_link_token(self, link_token: str) -> str | None:
        """The secret of a new session; None for a token that is not known, or was used before."""
        session = self._links.take(link_token)
        return self._sessions.add(session) if session else None

    def open(self, session: WebUiSession) -> str:
        """The secret of a new session."""
        return self._sessions.add(session)

    def find(self, secret: str) -> WebUiSession | None:
        return self._sessions.find(secret) if secret else None

    def close(self, secret: str) -> None:
        self._sessions.take(secret)


def _hash_session_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
