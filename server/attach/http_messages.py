"""Requests over streamable HTTP as MCP 2026-07-28 has them, each on its own, and what an HTTP status means.

Standard library only: `blocking_http` is for hooks, whose agent waits; `http_client` is for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from madeleine.memory.errors import AuthenticationFailed, InvalidInput, MadeleineError, ServerError, ServerUnavailable
from madeleine.server import __version__
from madeleine.server.addresses import is_https_or_loopback_http_url

HTTP_CLIENT_MCP_VERSION = "2026-07-28"


def mcp_http_headers(url: str, token: str) -> dict[str, str]:
    """The headers of all requests. Raises `InvalidInput` for a token that would go over the network unencrypted."""
    if token and not is_https_or_loopback_http_url(url):
        raise InvalidInput("The token would go unencrypted: write https://, or an address of this machine.")
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": HTTP_CLIENT_MCP_VERSION}
    return headers | ({"authorization": f"Bearer {token}"} if token else {})


def build_mcp_http_message_and_headers(
    request_id: int, method: str, params: Mapping[str, Any], client: str, *, progress: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """The message of a request of the program `client`, and its own headers."""
    prefix = "io.modelcontextprotocol/"
    meta = {
        f"{prefix}protocolVersion": HTTP_CLIENT_MCP_VERSION,
        f"{prefix}clientCapabilities": {},
        f"{prefix}clientInfo": {"name": client, "version": __version__},
    } | ({"progressToken": request_id} if progress else {})
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": meta}}
    named = params.get("uri" if method == "resources/read" else "name")
    return message, {"mcp-method": method} | ({"mcp-name": str(named)} if named else {})


def error_of_http_status(url: str, status: int, body: bytes) -> MadeleineError:
    """What an answer that is no success means for the person who called."""
    if status in (401, 403):
        return AuthenticationFailed(
            f"{url} does not accept the token, or needs one: `madeleine token create` makes one on the server."
        )
    try:
        message = str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        message = f"{url} answered with HTTP status {status}. Check the address."
    return ServerUnavailable(message) if status in (429, 503) else ServerError(message)
