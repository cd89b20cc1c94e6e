"""HTTP errors: a JSON-RPC error without an id, as MCP's HTTP transport defines it."""

from __future__ import annotations

import mcp_types as types
from starlette.responses import JSONResponse

BUSY = -32000
"""The first of JSON-RPC's codes that are free for servers."""
RETRY_SECONDS = 1


def error_response(status: int, message: str, *, retry_after: int | None = None) -> JSONResponse:
    """`retry_after`: seconds."""
    code = BUSY if retry_after is not None else types.INVALID_REQUEST
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else None
    body = {"jsonrpc": "2.0", "error": {"code": code, "message": message}}
    return JSONResponse(body, status_code=status, headers=headers)
