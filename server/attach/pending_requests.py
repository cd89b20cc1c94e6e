"""The requests of a client that have no answer yet: enough to repeat them to another host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from madeleine.server.attach.streams import MAX_LINE_BYTES
from madeleine.server.attach.tool_calls import encode_json_rpc

REPEATABLE_TOOLS = frozenset(
    {
        "recall", "recall_memory", "search_memory", "context",
        "store", "update_memory", "forget", "observe", "ingest",
    }
)  # fmt: skip
"""Tools whose call may be repeated when nobody knows whether the first was carried out. For `store`, `observe` and
`ingest` the host takes session and request id for an idempotency key."""
MAX_REQUEST_REPEATS = 5
"""A request over which hosts die is not repeated for ever."""
_PROTOCOL_VERSION_KEY = b'"io.modelcontextprotocol/protocolVersion"'

RequestId = str | int


@dataclass(slots=True)
class PendingRequest:
    line: bytes
    method: str
    tool: str
    repeats: int = 0

    @property
    def repeatable(self) -> bool:
        return self.repeats < MAX_REQUEST_REPEATS and (self.method != "tools/call" or self.tool in REPEATABLE_TOOLS)


class PendingRequests:
    """The pending requests in order of arrival, and the handshake, which has to be repeated to a new host."""

    def __init__(self) -> None:
        self._pending: dict[RequestId, PendingRequest] = {}
        self._initialize: tuple[RequestId, bytes] | None = None
        self._initialized: bytes | None = None
        self._repeated_handshake: RequestId | None = None
        """Its answer is not for the client, who has had one."""

    def __len__(self) -> int:
        return len(self._pending)

    def client_sends(self, line: bytes) -> bool:
        """Note a line of the client's. False if it is no JSON-RPC message: then a host has to answer what is wrong."""
        if len(line) > MAX_LINE_BYTES:  # no host reads it; its answer names no request
            return False
        match _parse_json(line):
            case {"method": str(method), "id": str() | int() as id_, **fields} if not isinstance(id_, bool):
                params = fields.get("params")
                tool = params.get("name") if isinstance(params, dict) else ""
                self._pending[id_] = PendingRequest(line, method, tool if isinstance(tool, str) else "")
                if method == "initialize":
                    self._initialize = id_, line
            case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as id_}}:
                self._pending.pop(id_, None)
            case {"method": "notifications/initialized"}:
                self._initialized = line
            case {"method": str()} as message if "id" not in message:
                pass
            case _:
                return False
        return True

    def host_sends(self, line: bytes) -> bool:
        """Note a line of the host's. Whether it is for the client: the answer to a repeated handshake is not."""
        match _parse_json(line):
            case {"id": str() | int() as id_, **fields} if "method" not in fields:
                if id_ == self._repeated_handshake:
                    self._repeated_handshake = None
                    return False
                self._pending.pop(id_, None)
            case _:
                pass
        return True

    def repeat_handshake(self) -> bytes | None:
        """The line that a new host has to get, and to answer, before any other; None if there was no handshake."""
        if self._initialize is None or self._initialize[0] in self._pending:
            return None
        self._repeated_handshake, line = self._initialize
        return line

    @property
    def awaits_handshake(self) -> bool:
        return self._repeated_handshake is not None

    def repeat(self) -> list[bytes]:
        """The lines for a new host after `repeat_handshake`. An unfinished handshake of the client comes first."""
        handshake = self._initialize[0] if self._initialize else None
        requests = [self._pending[id_] for id_ in sorted(self._pending, key=lambda id_: id_ != handshake)]
        for request in requests:
            request.repeats += 1
        lines = [request.line for request in requests]
        if self._initialized is not None:
            lines.insert(1 if handshake in self._pending else 0, self._initialized)
        return lines

    def fail(self, reason: str, *, repeatable_too: bool = False) -> Iterator[bytes]:
        """Error answers to the requests that must not be repeated, or to all, which are then no longer pending."""
        for id_, request in list(self._pending.items()):
            if repeatable_too or not request.repeatable:
                del self._pending[id_]
                yield _failed_request_answer(id_, request, reason)


def _failed_request_answer(id_: RequestId, request: PendingRequest, reason: str) -> bytes:
    if request.method != "tools/call":
        return encode_json_rpc(id=id_, error={"code": -32603, "message": reason})
    # Since 2026-07-28 each request names the version, and each result has a type.
    result_type = {"resultType": "complete"} if _PROTOCOL_VERSION_KEY in request.line else {}
    result = {"content": [{"type": "text", "text": reason}], "isError": True}
    return encode_json_rpc(id=id_, result=result | result_type)


def _parse_json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
