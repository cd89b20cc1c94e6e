"""Limits: requests per minute, requests at once, bytes and seconds of a request's body.

Each raises `HTTPException` for a request beyond it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.server.http.authentication import token_of
from madeleine.server.http.request_checks import RETRY_HEADERS

MAX_RATE_BUCKETS = 10_000
"""Remembered callers; beyond them the one seen longest ago starts anew."""


class RateLimit:
    """A token bucket for each key that holds a minute's worth and is filled evenly."""

    def __init__(self, per_minute: int) -> None:
        self._capacity = float(per_minute)
        self._per_second = per_minute / 60
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Key → (tokens, when)."""

    def wait(self, key: str, *, now: float) -> float:
        """0 if the request is accepted, else the seconds until one will be. `now`: seconds, of any origin."""
        tokens, since = self._buckets.pop(key, (self._capacity, now))
        tokens = min(self._capacity, tokens + (now - since) * self._per_second)
        accepted = tokens >= 1
        self._buckets[key] = (tokens - 1 if accepted else tokens, now)
        if len(self._buckets) > MAX_RATE_BUCKETS:
            self._buckets.popitem(last=False)
        return 0.0 if accepted else (1 - tokens) / self._per_second


class RateLimited:
    """429 for a token that asks too often; without a token, for an address. So tokens cannot be tried out either."""

    def __init__(self, app: ASGIApp, limit: RateLimit) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if seconds := math.ceil(self._limit.wait(rate_limit_key(scope), now=time.monotonic())):
            message = f"Too many requests. Try again in {seconds} s"
            raise HTTPException(429, message, {"Retry-After": str(seconds)})
        await self._app(scope, receive, send)


def rate_limit_key(scope: Scope) -> str:
    if token := token_of(scope):
        return f"token {token.client_id} {token.subject} {(token.claims or {}).get('iss', '')}"
    return f"address {(scope.get('client') or ('',))[0]}"


def limit_concurrency(app: ASGIApp, max_requests: int) -> ASGIApp:
    """503 for a request beyond that many at once."""
    active = 0

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal active
        if active >= max_requests:
            raise HTTPException(
                503, f"{max_requests} requests are served already. Try again in a moment", RETRY_HEADERS
            )
        active += 1
        try:
            await app(scope, receive, send)
        finally:
            active -= 1

    return serve


def buffer_body(app: ASGIApp, *, max_bytes: int, max_seconds: float) -> ASGIApp:
    """Passes a POST on when its whole body has arrived: 413 if it is too long, 408 if it takes too long, 415 if its
    type is not JSON."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(max_seconds):
                body = await _read_json(Request(scope, receive), max_bytes)
        except ClientDisconnect:
            return
        except TimeoutError as error:
            raise HTTPException(408, f"The request took longer than {max_seconds:g} s to arrive") from error
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        await app(scope, replay, send)

    return serve


async def _read_json(request: Request, max_bytes: int) -> bytes:
    """Raises `HTTPException`, `ClientDisconnect`."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Send JSON, with Content-Type: application/json")
    too_long = HTTPException(413, f"The request is longer than {max_bytes:,} bytes. Split it")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > max_bytes:
        raise too_long
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise too_long
    return bytes(body)
