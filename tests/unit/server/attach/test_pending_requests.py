"""What a forwarder remembers of its client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from madeleine.server.attach.lines import LONGEST_LINE
from madeleine.server.attach.pending_requests import MOST_REPEATS, Journal


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n"


def call(id_: int | str, tool: str, **meta: Any) -> bytes:
    return line(id=id_, method="tools/call", params={"name": tool, "arguments": {}} | ({"_meta": meta} if meta else {}))


INITIALIZE = line(id=0, method="initialize", params={})
INITIALIZED = line(method="notifications/initialized")


def test_only_what_has_no_answer_is_asked_again_in_its_order() -> None:
    journal = Journal()
    for id_ in ("a", 1, "1", 2):
        assert journal.sends(call(id_, "recall"))
    assert journal.hears(line(id=1, result={}))
    assert list(journal.again()) == [call("a", "recall"), call("1", "recall"), call(2, "recall")]


def test_what_the_client_has_cancelled_is_not_asked_again() -> None:
    journal = Journal()
    journal.sends(call(1, "recall"))
    journal.sends(line(method="notifications/cancelled", params={"requestId": 1}))
    assert list(journal.again()) == []


def test_a_new_host_is_greeted_as_the_first_was_and_its_answer_is_kept_from_the_client() -> None:
    journal = Journal()
    journal.sends(INITIALIZE)
    assert journal.handshake() is None, "the client still waits for the answer itself"
    assert list(journal.again()) == [INITIALIZE]
    assert journal.hears(line(id=0, result={}))
    journal.sends(INITIALIZED)
    journal.sends(call(1, "store"))
    assert journal.handshake() == INITIALIZE
    assert journal.shaking_hands
    assert journal.hears(line(method="notifications/message", params={})), "not an answer"
    assert not journal.hears(line(id=0, result={}))
    assert not journal.shaking_hands
    assert list(journal.again()) == [INITIALIZED, call(1, "store")]
    assert journal.hears(line(id=0, result={})), "an id may come again"


def test_a_handshake_that_was_cut_off_is_repeated_in_its_order() -> None:
    journal = Journal()
    for given in (INITIALIZE, INITIALIZED, call(1, "recall")):
        journal.sends(given)
    assert journal.handshake() is None
    assert list(journal.again()) == [INITIALIZE, INITIALIZED, call(1, "recall")]


def test_a_line_that_no_host_reads_is_not_repeated_for_ever() -> None:
    journal = Journal()
    assert not journal.sends(call(1, "x" * LONGEST_LINE))
    assert len(journal) == 0


def test_what_may_not_be_done_twice_is_answered_here() -> None:
    journal = Journal()
    journal.sends(call(1, "run_patrol"))
    journal.sends(call(2, "store"))
    journal.sends(line(id=3, method="tools/list"))
    [answer] = [json.loads(given) for given in journal.give_up("Call again.")]
    assert answer == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": "Call again."}], "isError": True},
    }
    assert len(journal) == 2


def test_an_answer_has_the_form_of_the_era_that_the_request_is_of() -> None:
    journal = Journal()
    journal.sends(call(1, "run_patrol", **{"io.modelcontextprotocol/protocolVersion": "2026-07-28"}))
    [answer] = [json.loads(given) for given in journal.give_up("Call again.")]
    assert answer["result"]["resultType"] == "complete"


def test_all_are_answered_when_there_is_no_host_to_be_had() -> None:
    journal = Journal()
    journal.sends(call(1, "store"))
    journal.sends(line(id="x", method="tools/list"))
    tool, other = [json.loads(given) for given in journal.give_up("The disk is gone.", all_of_them=True)]
    assert tool["result"]["isError"]
    assert other == {"jsonrpc": "2.0", "id": "x", "error": {"code": -32603, "message": "The disk is gone."}}
    assert len(journal) == 0


def test_a_request_that_hosts_die_over_is_not_asked_for_ever() -> None:
    journal = Journal()
    journal.sends(call(1, "store"))
    for _ in range(MOST_REPEATS):
        assert list(journal.give_up("no")) == []
        assert list(journal.again()) == [call(1, "store")]
    assert len(list(journal.give_up("no"))) == 1


@pytest.mark.parametrize(
    "nonsense", [b"{\n", b"[]\n", b"7\n", b"null\n", b"\xff\n", line(id=True, method="x"), line(id=None, method="x")]
)
def test_what_is_not_understood_is_left_to_the_host(nonsense: bytes) -> None:
    journal = Journal()
    assert not journal.sends(nonsense)
    assert journal.hears(nonsense)
    assert len(journal) == 0
