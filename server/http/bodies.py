"""Bodies of requests: read in whole, within limits of bytes, seconds and JSON's shape, before anything sees them."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.server.connections import ConnectionSlots
from madeleine.server.http.admission import ClosableSlotHolder, hold_slot_for_caller
from madeleine.server.mcp.json_limits import json_size_or_nesting_error

MIN_JSON_BYTES_CHECKED_IN_THREAD = 32 * 1024
"""A longer text is examined off the event loop."""


def wrap_app_to_buffer_json_body(
    app: ASGIApp, places: ConnectionSlots, *, max_bytes: int, max_seconds: float
) -> ASGIApp:
    """Passes a POST on when its whole body has arrived: 413 if it is too long, 408 if it takes too long or the caller
    sends too many others meanwhile, 415 if its type is not JSON, 400 if its JSON is too large to be parsed."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await app(scope, receive, send)
            return
        try:
            async with (
                asyncio.timeout(max_seconds) as limit,
                hold_slot_for_caller(places, scope, _BodyArrivalSlotHolder(limit)),
            ):
                body = await _read_json_body(Request(scope, receive), max_bytes)
        except ClientDisconnect:
            return
        except TimeoutError as error:
            raise HTTPException(408, f"The request took longer than {max_seconds:g} s to arrive") from error
        if error_message := await _json_size_or_nesting_error_of_body(body):
            raise HTTPException(400, f"The request was not read: {error_message}")
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        await app(scope, replay, send)

    return serve


class _BodyArrivalSlotHolder(ClosableSlotHolder):
    """The arrival of a body, which gives way to later ones."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        super().__init__(is_idle=True)
        self._limit = limit

    def close(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time())


async def _json_size_or_nesting_error_of_body(body: bytes) -> str:
    if len(body) < MIN_JSON_BYTES_CHECKED_IN_THREAD:
        return json_size_or_nesting_error(body)
    return await asyncio.to_thread(json_size_or_nesting_error, body)


async def _read_json_body(request: Request, max_bytes: int) -> bytes:
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
