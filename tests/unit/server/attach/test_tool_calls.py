"""Calls of tools without the SDK."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from madeleine.memory.errors import ConnectionLost, ServerError
from madeleine.server import __version__
from madeleine.server.attach.tool_calls import BlockingHostClient


def answered(**result: Any) -> Callable[[dict[str, Any]], list[Any]]:
    return lambda asked: [{"jsonrpc": "2.0", "id": asked["id"], "result": result}]


@contextmanager
def host(*answers: Callable[[dict[str, Any]], list[Any]]) -> Iterator[tuple[BlockingHostClient, list[Any]]]:
    """One that gives these answers to what it is asked, in turn, and hangs up."""
    ours, theirs = socket.socketpair()
    heard: list[Any] = []

    def serve() -> None:
        with theirs, theirs.makefile("rwb") as file:
            for answer in answers:
                heard.append(json.loads(file.readline()))
                for line in answer(heard[-1]):
                    file.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
                file.flush()

    thread = threading.Thread(target=serve)
    thread.start()
    with ours:
        yield BlockingHostClient(ours), heard
    thread.join()


def test_other_messages_before_the_answer_are_skipped() -> None:
    def chatty(asked: dict[str, Any]) -> list[Any]:
        return [
            {"method": "notifications/progress", "params": {}}, {"id": asked["id"], "method": "ping"},
            {"id": 99, "result": {}}, *answered(structuredContent={"new": 1})(asked),
        ]  # fmt: skip

    with host(chatty, answered(structuredContent={"new": 2})) as (call, heard):
        assert call("observe", {"session_id": "Zoé"}) == {"new": 1}
        assert call("observe", {}) == {"new": 2}
    assert [one["id"] for one in heard] == [1, 2]
    assert heard[0]["params"] == {"name": "observe", "arguments": {"session_id": "Zoé"}}


def test_the_handshake_names_the_client() -> None:
    with host(answered(protocolVersion="2025-11-25"), lambda asked: []) as (call, heard):
        call.initialize("hook")
    assert [one["method"] for one in heard] == ["initialize", "notifications/initialized"]
    assert heard[0]["params"]["clientInfo"] == {"name": "hook", "version": __version__}


@pytest.mark.parametrize(
    "answer",
    [
        answered(isError=True, content=[{"type": "text", "text": "You may only read."}]),
        lambda asked: [{"id": asked["id"], "error": {"code": -32602, "message": "You may only read."}}],
    ],
)
def test_an_error_has_the_host_s_message(answer: Callable[[dict[str, Any]], list[Any]]) -> None:
    with host(answer) as (call, _), pytest.raises(ServerError, match=r"You may only read\."):
        call("observe", {})


@pytest.mark.parametrize(
    ("answer", "said"), [(lambda asked: [], "went away"), (lambda asked: [b"HTTP/1.1 400\r\n"], "not the memory's")]
)
def test_hanging_up_or_an_invalid_line_is_a_lost_connection(answer: Callable[[Any], list[Any]], said: str) -> None:
    with host(answer) as (call, _), pytest.raises(ConnectionLost, match=said):
        call("observe", {})
