"""What a client has asked and has no answer to: enough to ask it again of another host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from madeleine.server.attach.lines import LONGEST_LINE

REPEATABLE = frozenset(
    {
        "recall", "recall_memory", "search_memory", "context",
        "store", "update_memory", "forget", "observe", "ingest",
    }
)  # fmt: skip
"""Tools whose call may be made again when nobody knows whether the first was carried out. For `store`, `observe` and
`ingest` the host takes session and request id for an idempotency key."""
MOST_REPEATS = 5
"""A request that hosts die over is not put to yet another for ever."""

_SAYS_VERSION = b'"io.modelcontextprotocol/protocolVersion"'

Key = tuple[str, str | int]


@dataclass(slots=True)
class Asked:
    line: bytes
    method: str
    tool: str
    repeats: int = 0

    @property
    def repeatable(self) -> bool:
        return self.repeats < MOST_REPEATS and (self.method != "tools/call" or self.tool in REPEATABLE)


class Journal:
    """Requests in the order in which they came; and the handshake, which a new host has to be told again."""

    def __init__(self) -> None:
        self._asked: dict[Key, Asked] = {}
        self._initialize: tuple[Key, bytes] | None = None
        self._initialized: bytes | None = None
        self._unheard: Key | None = None

    def __len__(self) -> int:
        return len(self._asked)

    def sends(self, line: bytes) -> bool:
        """A line of the client's. Whether it is known what it is: a host has to say what is wrong with any other."""
        if len(line) > LONGEST_LINE:  # no host reads it; what it answers names no request
            return False
        match _read(line):
            case {"method": str(method), "id": str() | int() as id_, **rest} if not isinstance(id_, bool):
                key = _key(id_)
                params = rest.get("params")
                tool = params.get("name") if isinstance(params, dict) else ""
                self._asked[key] = Asked(line, method, tool if isinstance(tool, str) else "")
                if method == "initialize":
                    self._initialize = key, line
            case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as id_}}:
                self._asked.pop(_key(id_), None)
            case {"method": "notifications/initialized"}:
                self._initialized = line
            case {"method": str()} as message if "id" not in message:
                pass
            case _:
                return False
        return True

    def hears(self, line: bytes) -> bool:
        """A line of the host's. Whether it is for the client: the answer to a repeated handshake is not."""
        match _read(line):
            case {"id": str() | int() as id_, **rest} if "method" not in rest:
                key = _key(id_)
                if key == self._unheard:
                    self._unheard = None
                    return False
                self._asked.pop(key, None)
            case _:
                pass
        return True

    def handshake(self) -> bytes | None:
        """What a new host has to be told first, and to answer, before anything else; None if there is nothing."""
        if self._initialize is None or self._initialize[0] in self._asked:
            return None
        self._unheard, line = self._initialize
        return line

    @property
    def shaking_hands(self) -> bool:
        return self._unheard is not None

    def again(self) -> Iterator[bytes]:
        """What to tell a new host once hands are shaken: the handshake, as far as the client has got, comes first."""
        greeting = self._initialize[0] if self._initialize else None
        first = [asked for key, asked in self._asked.items() if key == greeting]
        others = [asked for key, asked in self._asked.items() if key != greeting]
        for asked in (*first, *others):
            asked.repeats += 1
        yield from (asked.line for asked in first)
        if self._initialized is not None:
            yield self._initialized
        yield from (asked.line for asked in others)

    def give_up(self, reason: str, *, all_of_them: bool = False) -> Iterator[bytes]:
        """Answers in the host's place to what cannot be asked again, or to all."""
        for (_, id_), asked in list(self._asked.items()):
            if all_of_them or not asked.repeatable:
                del self._asked[_key(id_)]
                yield _failure(id_, asked, reason)


def _failure(id_: str | int, asked: Asked, reason: str) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id_}
    if asked.method == "tools/call":
        message["result"] = {"content": [{"type": "text", "text": reason}], "isError": True}
        if _SAYS_VERSION in asked.line:  # since 2026-07-28 each request does, and each result has a type
            message["result"]["resultType"] = "complete"
    else:
        message["error"] = {"code": -32603, "message": reason}
    return json.dumps(message).encode() + b"\n"


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _key(id_: str | int) -> Key:
    return type(id_).__name__, id_
