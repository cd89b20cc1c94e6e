"""MCP specification, stdio transport: one JSON-RPC message a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import anyio
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from madeleine.server.attach.streams import MAX_JSON_RPC_LINE_BYTES, read_lines_of_byte_stream
from madeleine.server.mcp import lines as transport
from madeleine.server.mcp.lines import (
    MessageStreams,
    encode_json_rpc_message_line,
    open_mcp_line_transport,
    parse_json_rpc_message_line,
)
from tests.rows import for_each_row

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Chunks:
    """A source that gives what it is told, chunk by chunk."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)

    async def read(self, limit: int, /) -> bytes:
        return next(self._chunks, b"")


class Silent:
    """A client that says no more and closes nothing."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = iter(chunks)

    async def read(self, limit: int, /) -> bytes:
        for chunk in self._chunks:
            return chunk
        await anyio.sleep_forever()
        raise AssertionError


class Gone:
    """A client that is not there any more."""

    async def read(self, limit: int, /) -> bytes:
        raise ConnectionResetError

    async def write(self, data: bytes, /) -> None:
        raise BrokenPipeError


class Written:
    def __init__(self) -> None:
        self.data = b""
        self._more = anyio.Event()

    async def write(self, data: bytes, /) -> None:
        self.data += data
        self._more.set()
        self._more = anyio.Event()

    async def until(self, count: int) -> None:
        """Returns when so many messages have been written."""
        with anyio.fail_after(5):
            while len(self.messages()) < count:
                await self._more.wait()

    def messages(self) -> list[Any]:
        return [json.loads(line) for line in self.data.splitlines()]


async def read(*chunks: bytes, longest: int = MAX_JSON_RPC_LINE_BYTES) -> list[bytes | None]:
    return [line async for line in read_lines_of_byte_stream(Chunks(chunks).read, longest)]


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The data in pieces, none empty: an empty chunk is the end."""
    bounds = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in pairwise(bounds)]


# --- framing ----------------------------------------------------------------------------------------------------


async def test_several_messages_in_a_chunk_are_several_lines() -> None:
    assert await read(b"one\ntwo\nthree\n") == [b"one", b"two", b"three"]


async def test_a_message_in_several_chunks_is_one_line() -> None:
    assert await read(b"o", b"n", b"e\nt", b"wo", b"\n") == [b"one", b"two"]


async def test_blank_lines_are_passed_over() -> None:
    assert await read(b"\n\none\n  \n\r\ntwo\r\n") == [b"one", b"two\r"]


async def test_a_last_line_without_an_end_is_read_too() -> None:
    assert await read(b"one\ntwo") == [b"one", b"two"]


async def test_nothing_gives_no_line() -> None:
    assert await read() == []


CONTENT = st.lists(st.binary(min_size=1, max_size=20).map(lambda raw: b"x" + raw.replace(b"\n", b"")), max_size=8)


@given(CONTENT, st.lists(st.integers(0, 1_000), max_size=12))
async def test_where_the_stream_is_cut_does_not_matter(content: list[bytes], places: list[int]) -> None:
    """A pipe cuts anywhere, inside of a character too."""
    data = b"".join(line + b"\n" for line in content)
    assert await read(*cut(data, places)) == content


@given(st.lists(st.integers(1, 60), max_size=8), st.lists(st.integers(0, 500), max_size=12))
async def test_a_line_that_is_too_long_never_harms_its_neighbours(lengths: list[int], places: list[int]) -> None:
    """It is skipped, and reported once; shorter ones come through whole."""
    content = [bytes([65 + i]) * length for i, length in enumerate(lengths)]
    data = b"".join(line + b"\n" for line in content)
    found = await read(*cut(data, places), longest=30)
    assert len(found) == len(content)
    for line, wanted in zip(found, content, strict=True):
        assert line == wanted or (line is None and len(wanted) > 30)


async def test_a_line_that_is_too_long_is_reported_once_and_the_next_is_read() -> None:
    assert await read(b"x" * 8, b"x" * 8, b"x" * 8, b"xx\nnext\n", longest=10) == [None, b"next"]


# --- messages ---------------------------------------------------------------------------------------------------


def refused(line: bytes | None) -> types.JSONRPCError:
    message = parse_json_rpc_message_line(line)
    assert isinstance(message, types.JSONRPCError)
    assert json.loads(encode_json_rpc_message_line(message))["jsonrpc"] == "2.0"
    return message


def accepted(line: bytes) -> Any:
    message = parse_json_rpc_message_line(line)
    assert isinstance(message, SessionMessage)
    return message.message


@for_each_row(
    ("line", "kind"),
    [
        (PING, types.JSONRPCRequest),
        (PING + b"\r", types.JSONRPCRequest),
        (b' {"jsonrpc":"2.0","id":"a","method":"ping","params":{}} ', types.JSONRPCRequest),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', types.JSONRPCNotification),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', types.JSONRPCResponse),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}', types.JSONRPCError),
    ],
)
def test_a_json_rpc_message_is_let_through(line: bytes, kind: type[Any]) -> None:
    assert isinstance(accepted(line), kind)


@for_each_row(
    "line", [b"hello", b"{", b'{"jsonrpc":"2.0",}', b"\xff\xfe\xfa", b'{"a":"\xff"}', b"[" * 50, b"1" * 5_000]
)
def test_what_is_not_json_is_answered_with_a_parse_error(line: bytes) -> None:
    """JSON-RPC 2.0, 5.1: −32700, and the id is null."""
    message = refused(line)
    assert message.error.code == -32700
    assert message.id is None


@for_each_row(
    ("line", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","id":"seven"}', "seven"),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', 7),
        (b'{"id":7,"method":"ping"}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":3}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":3}', 7),
        (b'{"jsonrpc":"2.0","id":true}', None),
        (b'{"jsonrpc":"2.0","id":[7]}', None),
        (b'{"jsonrpc":"2.0","id":1.5}', None),
        (b"[" * 100_000, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[' + b"1," * 20_000 + b"1]}", None),
        (b"{}", None),
        (b"[]", None),
        (b"[" + PING + b"]", None),
        (b"3", None),
        (b"null", None),
        (b'"ping"', None),
    ],
)
def test_what_is_not_json_rpc_is_answered_with_its_id(line: bytes, id_: str | int | None) -> None:
    """JSON-RPC 2.0, 5.1: −32600; so that no client waits for ever."""
    message = refused(line)
    assert message.error.code == -32600
    assert message.id == id_


def test_a_line_that_was_too_long_is_answered() -> None:
    message = refused(None)
    assert message.error.code == -32600
    assert str(MAX_JSON_RPC_LINE_BYTES) in message.error.message


def test_half_of_a_surrogate_pair_is_let_through_to_the_tool() -> None:
    """The tool says what is wrong with it; a parse error would say nothing."""
    line = rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"store","arguments":{"text":"a\ud83d"}}}'
    assert accepted(line).params["arguments"] == {"text": "a\ud83d"}


def test_a_whole_surrogate_pair_is_one_character() -> None:
    line = rb'{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"\ud83d\ude42"}}'
    assert accepted(line).params == {"text": "🙂"}


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_no_line_makes_reading_fail(line: bytes) -> None:
    message = parse_json_rpc_message_line(line)
    assert isinstance(message, SessionMessage) or encode_json_rpc_message_line(message)


@pytest.mark.parametrize("id_", ["\ud800", "ok"])
def test_every_answer_can_be_written(id_: str) -> None:
    """An id that was half of a surrogate pair once ended the writer, and with it the server."""
    line = encode_json_rpc_message_line(types.JSONRPCResponse(jsonrpc="2.0", id=id_, result={"text": "東京 \udfff\n"}))
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": id_, "result": {"text": "東京 \udfff\n"}}


def test_an_error_without_an_id_says_null() -> None:
    """JSON-RPC 2.0, 5: the member is required."""
    assert json.loads(encode_json_rpc_message_line(refused(b"x")))["id"] is None


# --- both directions --------------------------------------------------------------------------------------------


async def test_messages_go_in_and_bad_lines_are_answered_and_answers_go_out() -> None:
    written = Written()
    source = Chunks([PING + b"\nnot JSON\n" + PING + b"\n", b'{"jsonrpc":"2.0","id":9}\n'])
    async with (
        open_mcp_line_transport(source.read, written.write, anyio.Event()) as (incoming, outgoing),
        incoming,
        outgoing,
    ):
        found = [await incoming.receive(), await incoming.receive()]
        await outgoing.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"a": "b"})))
        await written.until(3)
    assert [type(message) for message in found] == [SessionMessage, SessionMessage]
    refusals = [(message["error"]["code"], message["id"]) for message in written.messages()[:2]]
    assert refusals == [(-32700, None), (-32600, 9)]
    assert written.messages()[2:] == [{"jsonrpc": "2.0", "id": 1, "result": {"a": "b"}}]


async def test_the_read_side_ends_with_the_source() -> None:
    async with (
        open_mcp_line_transport(Chunks([]).read, Written().write, anyio.Event()) as (incoming, outgoing),
        incoming,
        outgoing,
    ):
        assert [message async for message in incoming] == []


# --- the end ----------------------------------------------------------------------------------------------------

ANSWER = SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={}))


async def assert_ended(streams: MessageStreams) -> None:
    with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
        await streams[0].receive()


async def assert_open(streams: MessageStreams) -> None:
    """Whatever could happen by now has happened, and the read side has not ended: its end cancels the calls."""
    await anyio.wait_all_tasks_blocked()
    with pytest.raises(anyio.WouldBlock):
        streams[0].receive_nowait()


async def test_the_read_side_stays_open_until_what_was_asked_is_answered() -> None:
    """A client that closed its end at once had its calls cancelled."""
    written = Written()
    async with (
        open_mcp_line_transport(Chunks([PING + b"\n" + PING]).read, written.write, anyio.Event()) as streams,
        streams[0],
        streams[1],
    ):
        await streams[0].receive()
        await streams[0].receive()
        await streams[1].send(ANSWER)
        await assert_open(streams)
        await streams[1].send(ANSWER)
        await assert_ended(streams)
        assert len(written.messages()) == 2


async def test_a_call_that_its_client_cancelled_is_not_waited_for() -> None:
    """MCP, cancellation: it is never answered."""
    async with (
        open_mcp_line_transport(Chunks([PING]).read, Written().write, anyio.Event()) as streams,
        streams[0],
        streams[1],
    ):
        message = await streams[0].receive()
        await assert_open(streams)
        assert isinstance(message, SessionMessage)
        assert isinstance(message.metadata, ServerMessageMetadata)
        assert message.metadata.on_request_unanswered
        await message.metadata.on_request_unanswered()
        await assert_ended(streams)


async def test_what_is_no_answer_ends_no_wait() -> None:
    progress = SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method="notifications/progress"))
    async with (
        open_mcp_line_transport(Chunks([PING]).read, Written().write, anyio.Event()) as streams,
        streams[0],
        streams[1],
    ):
        await streams[0].receive()
        await streams[1].send(progress)
        await assert_open(streams)


async def test_a_call_that_does_not_end_is_waited_for_no_longer_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "OPEN_CALLS_GRACE_SECONDS", 0)
    async with (
        open_mcp_line_transport(Chunks([PING]).read, Written().write, anyio.Event()) as streams,
        streams[0],
        streams[1],
    ):
        await streams[0].receive()
        await assert_ended(streams)


async def test_told_to_end_it_reads_no_more_and_waits_for_the_answers() -> None:
    end, written = anyio.Event(), Written()
    async with (
        open_mcp_line_transport(Silent(PING + b"\n").read, written.write, end) as streams,
        streams[0],
        streams[1],
    ):
        await streams[0].receive()
        end.set()
        await assert_open(streams)
        await streams[1].send(ANSWER)
        await assert_ended(streams)
    assert len(written.messages()) == 1


async def test_a_client_that_reads_no_more_is_the_end_and_what_it_asked_is_finished() -> None:
    """A broken pipe once ended the server with a traceback."""
    async with (
        open_mcp_line_transport(Silent(PING + b"\n" + PING + b"\n").read, Gone().write, anyio.Event()) as streams,
        streams[0],
        streams[1],
    ):
        await streams[0].receive()
        await streams[0].receive()
        await streams[1].send(ANSWER)
        await assert_open(streams)
        await streams[1].send(ANSWER)
        await assert_ended(streams)


async def test_a_bad_line_of_a_client_that_reads_no_more_is_the_end_too() -> None:
    async with (
        open_mcp_line_transport(Silent(b"not JSON\n").read, Gone().write, anyio.Event()) as streams,
        streams[0],
        streams[1],
    ):
        await assert_ended(streams)


async def test_a_connection_that_is_reset_is_the_end() -> None:
    """A socket says so when its client died with answers unread."""
    async with open_mcp_line_transport(Gone().read, Written().write, anyio.Event()) as streams, streams[0], streams[1]:
        await assert_ended(streams)
