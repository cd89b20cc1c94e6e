"""Who is let in, before anything of a request is read: the limit of wrong tokens, and places for calls, bodies, streams
and sessions, of which each caller has a share."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.server.connections import ConnectionSlots
from madeleine.server.http.request_checks import (
    RETRY_AFTER_HEADERS,
    RateLimiter,
    address_rate_limit_key_of_request,
    rate_limit_key_of_request,
    require_rate_within_limit,
)

MAX_REMEMBERED_VALID_TOKENS = 10_000
"""Remembered as valid, each with the address that sent it; beyond them the one seen longest ago is forgotten."""
MAX_TOKEN_HEADER_BYTES = 8 * 1024


def with_request_authentication(app: ASGIApp, backend: BearerAuthBackend, limit: RateLimiter) -> ASGIApp:
    """Verify the token of a request, if it has one.

    Every verification of a token that was not valid before, from the same address, counts against the address: so
    neither do guesses cost more than the limit, nor is one of them right that comes after too many wrong ones.
    """
    known: OrderedDict[bytes, None] = OrderedDict()

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        header = Headers(scope=scope).get("authorization", "")
        if header:
            address = address_rate_limit_key_of_request(scope)
            id_ = hashlib.sha256(f"{address} {header}".encode()).digest()
            if id_ not in known:
                require_rate_within_limit(limit, address)
            valid = await backend.authenticate(HTTPConnection(scope)) if len(header) <= MAX_TOKEN_HEADER_BYTES else None
            if valid:
                scope["auth"], scope["user"] = valid
                if id_ not in known:
                    limit.undo_request(address)
                known[id_] = None
                known.move_to_end(id_)
                if len(known) > MAX_REMEMBERED_VALID_TOKENS:
                    known.popitem(last=False)
            else:
                known.pop(id_, None)
        await app(scope, receive, send)

    return serve


@dataclass(eq=False)
class ClosableSlotHolder:
    """An `ConnectionSlotHolder` that is never idle, or is closed by an event."""

    is_idle: bool = False
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        self.closed.set()


@asynccontextmanager
async def hold_slot_for_caller(
    places: ConnectionSlots, scope: Scope, place: ClosableSlotHolder
) -> AsyncIterator[ClosableSlotHolder]:
    """Raises `HTTPException`."""
    owner = rate_limit_key_of_request(scope)
    if not places.claim(owner, place):
        message = f"{places.per_owner} requests of one caller, or {places.total} of all, are served already"
        raise HTTPException(503, f"{message}. Try again in a moment", RETRY_AFTER_HEADERS)
    try:
        yield place
    finally:
        places.release(owner, place)


def app_with_concurrency_limit(app: ASGIApp, places: ConnectionSlots) -> ASGIApp:
    """503 for a caller's request beyond its places."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        async with hold_slot_for_caller(places, scope, ClosableSlotHolder()):
            await app(scope, receive, send)

    return serve


# --- sessions --------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class McpHttpSession:
    """An `ConnectionSlotHolder`: a session of the streamable transport."""

    id: str
    scope: Scope
    """Of the request that began it."""
    limits: McpHttpSessionLimiter
    requests: int = 0
    """Open ones, streams among them."""

    @property
    def is_idle(self) -> bool:
        return not self.requests

    def close(self) -> None:
        self.limits.end_session(self)


class McpHttpSessionLimiter:
    """Wraps the streamable transport. A caller's own session that was idle longest ends when the caller begins one too
    many: its next request is answered with 404, and the client begins another (MCP, session management)."""

    def __init__(self, app: ASGIApp, places: ConnectionSlots) -> None:
        self._app = app
        self._places = places
        self._sessions: dict[str, McpHttpSession] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = self._sessions.get(Headers(scope=scope).get(MCP_SESSION_ID_HEADER, ""))
        if session and rate_limit_key_of_request(session.scope) != rate_limit_key_of_request(scope):
            session = None  # the transport refuses it
        began, status = "", 0

        async def watch(message: Message) -> None:
            nonlocal began, status
            if message["type"] == "http.response.start":
                status = message["status"]
                began = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER, "") if status < 400 else ""
                if began and began not in self._sessions:
                    self._register_session(began, scope)
            await send(message)

        if session is None:
            await self._app(scope, receive, watch)
            return
        session.requests += 1
        try:
            await self._app(scope, receive, watch)
        finally:
            session.requests -= 1
            self._places.mark_as_most_recently_active(rate_limit_key_of_request(session.scope), session)
            if status == 404 or (scope["method"] == "DELETE" and status < 400):
                self._unregister_session(session)

    def _register_session(self, id_: str, scope: Scope) -> None:
        session = McpHttpSession(id_, scope, self)
        self._sessions[id_] = session
        if not self._places.claim(rate_limit_key_of_request(scope), session):
            session.close()

    def _unregister_session(self, session: McpHttpSession) -> None:
        self._sessions.pop(session.id, None)
        self._places.release(rate_limit_key_of_request(session.scope), session)

    def end_session(self, session: McpHttpSession) -> None:
        """As its client would, with its token."""
        self._unregister_session(session)
        headers = [(MCP_SESSION_ID_HEADER.encode(), session.id.encode())]
        scope = dict(session.scope, method="DELETE", headers=headers)

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignore(message: Message) -> None:
            """Nobody waits for the answer."""

        task = asyncio.ensure_future(self._app(scope, receive, ignore))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
