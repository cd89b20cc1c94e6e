"""Tool calls to a server over HTTP by a program that somebody waits for: a hook. Standard library only."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException
from itertools import count
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from madeleine.memory.errors import ConnectionLost, InvalidInput, ServerError, ServerUnavailable
from madeleine.server.addresses import is_http_url
from madeleine.server.attach.http_messages import (
    build_mcp_http_message_and_headers,
    error_of_http_status,
    mcp_http_headers,
)
from madeleine.server.attach.tool_calls import result_of_json_rpc_answer, structured_content_of_tool_result

MAX_ERROR_BODY_BYTES = 65_536


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would carry the token to another place."""

    def redirect_request(self, *_: Any) -> None:
        return None


class BlockingHttpToolClient:
    """One call at a time, each a request of its own. `until`, by the monotonic clock: when to give up."""

    def __init__(self, url: str, token: str, *, name: str, until: float) -> None:
        """Raises `InvalidInput` for a URL that is none, or that a token may not be sent to."""
        if not is_http_url(url):
            raise InvalidInput("--url: write the server's address whole, as in https://memory.example.org/mcp.")
        self._url = url
        self._headers = mcp_http_headers(url, token) | {"content-type": "application/json"}
        self._name = name
        self._until = until
        self._ids = count(1)
        self._opener = build_opener(_NoRedirects)

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The structured answer.

        Raises the `MadeleineError` that the tool answered with, `AuthenticationFailed`, `ServerUnavailable`,
        `ConnectionLost`."""
        params = {"name": tool, "arguments": arguments}
        message, headers = build_mcp_http_message_and_headers(next(self._ids), "tools/call", params, self._name)
        request = Request(self._url, json.dumps(message).encode(), self._headers | headers, method="POST")
        try:
            with self._opener.open(request, timeout=max(0.1, self._until - time.monotonic())) as response:
                is_stream = response.headers.get_content_type() == "text/event-stream"
                for answer in _parse_json_messages(response if is_stream else [response.read()], is_stream=is_stream):
                    if "method" not in answer and answer.get("id") == message["id"]:
                        return structured_content_of_tool_result(result_of_json_rpc_answer(answer))
        except HTTPError as error:
            with error:
                raise error_of_http_status(self._url, error.code, error.read(MAX_ERROR_BODY_BYTES)) from error
        except URLError as error:
            raise ServerUnavailable(
                f"{self._url} cannot be reached ({error.reason}). Check server and address."
            ) from error
        except (OSError, HTTPException) as error:
            raise ConnectionLost(f"{self._url} went away before it answered ({error})") from error
        except ValueError as error:
            raise ServerError(f"{self._url} is no MCP server. Check the address.") from error
        raise ConnectionLost(f"{self._url} went away before it answered")


def _parse_json_messages(lines: Iterable[bytes], *, is_stream: bool) -> Iterator[Mapping[str, Any]]:
    """JSON messages; of an event stream, whose events have one line of data each. Raises `ValueError`."""
    for line in lines:
        text = line.removeprefix(b"data:") if line.startswith(b"data:") else b"" if is_stream else line
        if text.strip():
            message = json.loads(text)
            if not isinstance(message, dict):
                raise ValueError("a message is a JSON object")
            yield message
