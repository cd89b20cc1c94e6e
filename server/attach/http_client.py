"""A program's connection to a server over streamable HTTP, as MCP 2026-07-28 has it: each call is a request of its own,
so it survives a restart of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx2
from pydantic import TypeAdapter

from madeleine.memory.errors import ConnectionLost, ServerError, ServerUnavailable
from madeleine.server.attach.client import ToolClient, ToolProgressCallback, pass_progress_notification_to_callback
from madeleine.server.attach.http_messages import (
    build_mcp_http_message_and_headers,
    error_of_http_status,
    mcp_http_headers,
)
from madeleine.server.attach.tool_calls import result_of_json_rpc_answer

JSON_OBJECT_ADAPTER = TypeAdapter(dict[str, Any])
TOOL_CALL_HTTP_TIMEOUT = httpx2.Timeout(30, read=300)
"""Seconds. A patrol reports progress more often than it may be silent."""


class HttpToolClient(ToolClient):
    """A connection to a server over HTTP."""

    def __init__(self, http: httpx2.AsyncClient, url: str, name: str) -> None:
        self._http = http
        self._url = url
        self._name = name
        self._ids = count(1)

    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: ToolProgressCallback | None = None
    ) -> dict[str, Any]:
        message, headers = build_mcp_http_message_and_headers(
            next(self._ids), method, params, self._name, progress=on_progress is not None
        )
        try:
            async with self._http.stream("POST", self._url, json=message, headers=headers) as response:
                await _check_http_status(response)
                async for received in _json_rpc_messages_of_response(response):
                    if "method" not in received:
                        return result_of_json_rpc_answer(received)
                    if on_progress and received["method"] == "notifications/progress":
                        await pass_progress_notification_to_callback(received, on_progress)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            raise ServerUnavailable(f"{self._url} cannot be reached ({error}). Check server and address.") from error
        except (httpx2.TransportError, httpx2.StreamError) as error:
            raise self._connection_lost_error(str(error)) from error
        raise self._connection_lost_error("the answer has no end")

    def _connection_lost_error(self, reason: str) -> ConnectionLost:
        return ConnectionLost(f"{self._url} went away before it answered ({reason}). Call again.")


async def _check_http_status(response: httpx2.Response) -> None:
    if response.is_error or response.is_redirect:
        raise error_of_http_status(str(response.url), response.status_code, await response.aread())


async def _json_rpc_messages_of_response(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        async for event in httpx2.EventSource(response):
            if event.data:
                yield _parse_json_object(event.data, response)
    else:
        yield _parse_json_object(await response.aread(), response)


def _parse_json_object(data: str | bytes, response: httpx2.Response) -> dict[str, Any]:
    try:
        return JSON_OBJECT_ADAPTER.validate_json(data)
    except ValueError as error:
        raise ServerError(f"{response.url} is no MCP server. Check the address.") from error


@asynccontextmanager
async def open_http_tool_client(url: str, token: str, name: str) -> AsyncIterator[ToolClient]:
    """Raises `InvalidInput` for a token that would go over the network unencrypted, `AuthenticationFailed`,
    `ServerUnavailable`."""
    headers = mcp_http_headers(url, token)
    async with httpx2.AsyncClient(headers=headers, timeout=TOOL_CALL_HTTP_TIMEOUT) as http:
        client = HttpToolClient(http, url, name)
        await client.request("server/discover", {})
        yield client
