"""What a hook is told when a server over HTTP answers in one way or another."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from madeleine.memory.errors import (
    AuthenticationFailed,
    ConnectionLost,
    InvalidInput,
    MadeleineError,
    ServerError,
    ServerUnavailable,
)
from madeleine.server.attach.blocking_http import BlockingHttpToolClient
from tests.rows import for_each_row

ANSWER = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"new": 1}}})
NOTIFICATION = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
Reply = tuple[int, str, str]
"""Status, content type or place of a redirect, body."""


class OneReply(BaseHTTPRequestHandler):
    reply: Reply = (200, "application/json", ANSWER)
    received: dict[str, str]

    def do_POST(self) -> None:
        type(self).received = {name.lower(): value for name, value in self.headers.items()}
        self.rfile.read(int(self.headers["content-length"]))
        status, kind, body = self.reply
        self.send_response(status)
        self.send_header("location" if status in (302, 307) else "content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing on the tests' standard error."""


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), OneReply) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        thread.join()


def called(url: str, token: str = "") -> dict[str, object]:
    client = BlockingHttpToolClient(url, token, name="a hook", until=time.monotonic() + 10)
    return client("observe", {"session_id": "s"})


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", ANSWER),
        ("text/event-stream", f"event: message\ndata: {NOTIFICATION}\n\n: a comment\n\ndata:{ANSWER}\n\n"),
    ],
)
def test_an_answer_is_read_from_json_and_from_a_stream_of_events(
    url: str, kind: str, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OneReply, "reply", (200, kind, body))
    assert called(url, "mdl_secret") == {"new": 1}
    assert OneReply.received["authorization"] == "Bearer mdl_secret"
    assert (OneReply.received["mcp-method"], OneReply.received["mcp-name"]) == ("tools/call", "observe")


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        ((401, "text/plain", ""), AuthenticationFailed, "madeleine token create"),
        ((404, "text/plain", "no"), ServerError, "HTTP status 404"),
        ((503, "application/json", '{"error": {"message": "too many"}}'), ServerUnavailable, "too many"),
        ((307, "http://127.0.0.1:9/elsewhere", ""), ServerError, "HTTP status 307"),
        ((200, "text/html", "<html>"), ServerError, "is no MCP server"),
        ((200, "application/json", "[]"), ServerError, "is no MCP server"),
        ((200, "text/event-stream", "data: {}\n\n"), ConnectionLost, "went away"),
        ((200, "application/json", '{"id": 1, "error": {"message": "no tool"}}'), ServerError, "no tool"),
    ],
)
def test_what_went_wrong_is_said_with_the_next_step(
    url: str, reply: Reply, kind: type[MadeleineError], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OneReply, "reply", reply)
    with pytest.raises(kind, match=says):
        called(url)


@for_each_row(
    ("url", "token", "kind", "says"),
    [
        ("memory.example.org", "", InvalidInput, "--url"),
        ("http://memory.example.org/mcp", "mdl_x", InvalidInput, "unencrypted"),
        ("http://127.0.0.1:9/mcp", "", ServerUnavailable, "cannot be reached"),
    ],
)
def test_what_cannot_be_called_is_refused(url: str, token: str, kind: type[MadeleineError], says: str) -> None:
    with pytest.raises(kind, match=says):
        called(url, token)
