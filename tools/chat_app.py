"""The app in the chat (MCP Apps, 2026-01-26): a page that shows the answers of some tools, if the client can.

The text of an answer is whole without it. The page needs no network, so it declares no policy: the client's
default lets it have none.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import mcp_types as types

MCP_APP_MIME_TYPE = "text/html;profile=mcp-app"
MCP_APP_URI_PREFIX = "ui://madeleine/"
TOOLS_WITH_MCP_APP = frozenset({"recall", "recall_memory", "search_memory", "run_patrol"})
_MCP_APP_HTML_FILE = Path(__file__).with_suffix(".html")


@cache
def mcp_app_html() -> str:
    return _MCP_APP_HTML_FILE.read_text(encoding="utf-8")


@cache
def mcp_app_uri() -> str:
    """It names the content: a client that keeps pages by their URI shows no old one."""
    return f"{MCP_APP_URI_PREFIX}{hashlib.sha256(mcp_app_html().encode()).hexdigest()[:6]}"


def mcp_app_tool_meta() -> dict[str, Any]:
    """The `_meta` of a tool in the list of tools."""
    return {"ui": {"resourceUri": mcp_app_uri()}}


def read_mcp_app_resource(uri: str) -> types.ReadResourceResult | None:
    """None for any other URI. The page of an earlier version is asked for by a client that has kept its list of tools:
    this one stands in."""
    if not uri.startswith(MCP_APP_URI_PREFIX):
        return None
    content = types.TextResourceContents(uri=uri, mime_type=MCP_APP_MIME_TYPE, text=mcp_app_html())
    return types.ReadResourceResult(contents=[content])
