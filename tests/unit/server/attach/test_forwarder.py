"""What a forwarder remembers of its client."""

from __future__ import annotations

import json
import select
import signal
from typing import Any

import pytest

from madeleine.server.attach.forwarder import MAX_REQUEST_REPEATS, PendingRequests, open_stop_signal_socket
from madeleine.server.attach.streams import MAX_JSON_RPC_LINE_BYTES
from tests.rows import for_each_row


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n"


def call(id_: int | str, tool: str, **meta: Any) -> bytes:
    return line(id=id_, method="tools/call", params={"name": tool, "arguments": {}} | ({"_meta": meta} if meta else {}))


INITIALIZE = line(id=0, method="initialize", params={})
INITIALIZED = line(method="notifications/initialized")


def test_only_unanswered_requests_are_repeated_in_their_order() -> None:
    pending = PendingRequests()
    for id_ in ("a", 1, "1", 2):
        assert pending.track_client_line_and_is_valid(call(id_, "recall"))
    assert pending.track_host_line_and_should_forward(line(id=1, result={}))
    assert list(pending.lines_to_resend_to_new_host()) == [call("a", "recall"), call("1", "recall"), call(2, "recall")]


def test_a_cancelled_request_is_not_repeated() -> None:
    pending = PendingRequests()
    pending.track_client_line_and_is_valid(call(1, "recall"))
    pending.track_client_line_and_is_valid(line(method="notifications/cancelled", params={"requestId": 1}))
    assert list(pending.lines_to_resend_to_new_host()) == []


def test_a_repeated_handshake_is_not_answered_to_the_client() -> None:
    pending = PendingRequests()
    pending.track_client_line_and_is_valid(INITIALIZE)
    assert pending.handshake_line_to_repeat() is None, "the client still waits for the answer itself"
    assert list(pending.lines_to_resend_to_new_host()) == [INITIALIZE]
    assert pending.track_host_line_and_should_forward(line(id=0, result={}))
    pending.track_client_line_and_is_valid(INITIALIZED)
    pending.track_client_line_and_is_valid(call(1, "store"))
    assert pending.handshake_line_to_repeat() == INITIALIZE
    assert pending.awaits_repeated_handshake_reply
    assert pending.track_host_line_and_should_forward(line(method="notifications/message", params={})), "not an answer"
    assert not pending.track_host_line_and_should_forward(line(id=0, result={}))
    assert not pending.awaits_repeated_handshake_reply
    assert list(pending.lines_to_resend_to_new_host()) == [INITIALIZED, call(1, "store")]
    assert pending.track_host_line_and_should_forward(line(id=0, result={})), "an id may come again"


def test_an_interrupted_handshake_is_repeated_in_its_order() -> None:
    pending = PendingRequests()
    for given in (INITIALIZE, INITIALIZED, call(1, "recall")):
        pending.track_client_line_and_is_valid(given)
    assert pending.handshake_line_to_repeat() is None
    assert list(pending.lines_to_resend_to_new_host()) == [INITIALIZE, INITIALIZED, call(1, "recall")]


def test_a_line_that_no_host_reads_is_not_repeated_for_ever() -> None:
    pending = PendingRequests()
    assert not pending.track_client_line_and_is_valid(call(1, "x" * MAX_JSON_RPC_LINE_BYTES))
    assert len(pending) == 0


def test_a_call_that_must_not_be_repeated_is_answered_by_the_forwarder() -> None:
    pending = PendingRequests()
    pending.track_client_line_and_is_valid(call(1, "run_patrol"))
    pending.track_client_line_and_is_valid(call(2, "store"))
    pending.track_client_line_and_is_valid(line(id=3, method="tools/list"))
    [answer] = [json.loads(given) for given in pending.remove_unrepeatable_and_yield_errors("Call again.")]
    assert answer == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": "Call again."}], "isError": True},
    }
    assert len(pending) == 2


def test_an_error_answer_has_the_form_of_the_request_s_protocol_version() -> None:
    pending = PendingRequests()
    pending.track_client_line_and_is_valid(
        call(1, "run_patrol", **{"io.modelcontextprotocol/protocolVersion": "2026-07-28"})
    )
    [answer] = [json.loads(given) for given in pending.remove_unrepeatable_and_yield_errors("Call again.")]
    assert answer["result"]["resultType"] == "complete"


def test_all_requests_are_answered_when_no_host_can_be_started() -> None:
    pending = PendingRequests()
    pending.track_client_line_and_is_valid(call(1, "store"))
    pending.track_client_line_and_is_valid(line(id="x", method="tools/list"))
    tool, other = [
        json.loads(given)
        for given in pending.remove_unrepeatable_and_yield_errors("The disk is gone.", repeatable_too=True)
    ]
    assert tool["result"]["isError"]
    assert other == {"jsonrpc": "2.0", "id": "x", "error": {"code": -32603, "message": "The disk is gone."}}
    assert len(pending) == 0


def test_a_request_over_which_hosts_die_is_not_repeated_for_ever() -> None:
    pending = PendingRequests()
    pending.track_client_line_and_is_valid(call(1, "store"))
    for _ in range(MAX_REQUEST_REPEATS):
        assert list(pending.remove_unrepeatable_and_yield_errors("no")) == []
        assert list(pending.lines_to_resend_to_new_host()) == [call(1, "store")]
    assert len(list(pending.remove_unrepeatable_and_yield_errors("no"))) == 1


@for_each_row(
    "nonsense", [b"{\n", b"[]\n", b"7\n", b"null\n", b"\xff\n", line(id=True, method="x"), line(id=None, method="x")]
)
def test_an_invalid_line_is_left_to_the_host(nonsense: bytes) -> None:
    pending = PendingRequests()
    assert not pending.track_client_line_and_is_valid(nonsense)
    assert pending.track_host_line_and_should_forward(nonsense)
    assert len(pending) == 0


def test_a_signal_that_comes_with_its_handler_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    set_handler = signal.signal

    def set_handler_and_end(number: int, handler: Any) -> Any:
        before = set_handler(number, handler)
        if callable(handler):
            signal.raise_signal(number)
        return before

    monkeypatch.setattr(signal, "signal", set_handler_and_end)
    with open_stop_signal_socket() as stop:
        assert select.select([stop], [], [], 0)[0] == [stop]
        monkeypatch.undo()
