"""MCP on standard input and output for a client that starts servers, carried out by a server over HTTP.

Every request goes there as it is, with the token; that server decides whose memory it is and which tools there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from madeleine.memory.errors import MadeleineError
from madeleine.server import __version__
from madeleine.server.attach.client import ToolClient
from madeleine.server.attach.http_client import open_http_tool_client
from madeleine.server.mcp.lines import open_mcp_stdio_transport
from madeleine.server.mcp.server import RequestContext, call_on_stop_signals, open_client_progress_reporter
from madeleine.tools.replies import tool_result_of_error

CLIENT_NAME_SENT_TO_REMOTE_SERVER = "madeleine --url"
METHODS_BY_CAPABILITY: Mapping[str, tuple[str, ...]] = {
    "tools": ("tools/list", "tools/call"),
    "prompts": ("prompts/list", "prompts/get"),
    "resources": ("resources/list", "resources/templates/list", "resources/read"),
    "io.modelcontextprotocol/skills": ("skills/list", "skills/get"),
}
"""Capability or extension of the server over HTTP → the requests that it then answers."""


class ForwardedRequestParams(types.RequestParams):
    """Whatever a client sends: the server over HTTP reads it."""

    model_config = ConfigDict(extra="allow")


def build_forwarding_server(remote: ToolClient, discovered: Mapping[str, Any]) -> Server[Any]:
    """`discovered`: the answer of the server over HTTP to `server/discover`."""
    server = Server[Any]("madeleine", version=__version__, instructions=discovered.get("instructions"))
    capabilities: Mapping[str, Any] = discovered.get("capabilities") or {}
    extensions: Mapping[str, Any] = capabilities.get("extensions") or {}
    server.extensions.update(extensions)
    for capability in {**capabilities, **extensions}:
        for method in METHODS_BY_CAPABILITY.get(capability, ()):
            server.add_request_handler(method, ForwardedRequestParams, partial(forward_request, remote, method))
    return server


async def forward_request(
    remote: ToolClient, method: str, context: RequestContext, params: ForwardedRequestParams
) -> dict[str, Any] | types.CallToolResult:
    given = params.model_dump(by_alias=True, exclude_none=True, exclude={"meta"})
    async with open_client_progress_reporter(context) as progress:

        async def report(done: float, total: float | None, message: str | None) -> None:
            progress(int(done), int(total or 0), message or "")

        try:
            return await remote.request(method, given, report if method == "tools/call" else None)
        except MadeleineError as error:
            if method == "tools/call":  # a model reads the result, and nobody an error of the protocol
                return tool_result_of_error(error)
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error


async def serve_remote_on_stdio(url: str, token: str) -> None:
    """Serve until the client closes either pipe, or SIGTERM or SIGINT. Raises as `open_http_tool_client`."""
    end = anyio.Event()
    with call_on_stop_signals(end.set):
        async with open_http_tool_client(url, token, CLIENT_NAME_SENT_TO_REMOTE_SERVER) as remote:
            server = build_forwarding_server(remote, await remote.request("server/discover", {}))
            async with open_mcp_stdio_transport(end) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
