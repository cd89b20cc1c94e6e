"""What no well-behaved client sends."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.serving import wire


def test_numbers_that_are_none_and_half_characters_are_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with wire(tmp_path) as client:
        for arguments, named in (
            (b'{"text":"x","importance":NaN}', "importance"),
            (b'{"text":"x","importance":Infinity}', "importance"),
            (b'{"text":"x","importance":1e999}', "importance"),
            (rb'{"text":"\ud800 half a character"}', "surrogate"),
            (rb'{"text":"x","themes":["\udfff"]}', "surrogate"),
            (rb'{"text":"x","\ud83d":1}', "arguments"),
            (rb'{"text":"a\u0000b"}', "NUL"),
        ):
            answer = client.store(arguments)
            assert answer["id"] == 7
            assert answer["result"]["isError"] is True
            assert named in answer["result"]["content"][0]["text"]
        found = client.call("tools/call", {"name": "search_memory", "arguments": {"query": "x"}})
    assert found["result"]["structuredContent"]["hits"] == []


def test_a_line_that_is_no_message_is_answered_and_the_next_one_served(tmp_path: Path) -> None:
    with wire(tmp_path) as client:
        client.send(b"this is not JSON")
        assert client.answer()["error"]["code"] == -32700
        client.send(b'{"id":5,"method":"x"}')
        answer = client.answer()
        assert (answer["id"], answer["error"]["code"]) == (5, -32600)
        assert len(client.call("tools/list", {})["result"]["tools"]) == 5


def test_the_server_ends_with_its_input_and_leaves_no_owner_behind(tmp_path: Path) -> None:
    with wire(tmp_path) as client:
        client.store(b'{"text":"The last thing that was said"}')
    assert not (tmp_path / "owner.json").exists()
    with wire(tmp_path) as client:
        found = client.call("tools/call", {"name": "search_memory", "arguments": {"query": "last"}})
    assert len(found["result"]["structuredContent"]["hits"]) == 1
