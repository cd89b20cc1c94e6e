"""Attacks on a server of this machine: `python -m benchmarks.attack.attackers NAME… --port N --token T --issuer URL`.

A process of its own, so that the load of attacking does not slow down what is measured. Each attack goes on until the
process is killed, and connects again whenever it is thrown out. Raw sockets: no HTTP client sends such requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

SILENT_SOCKETS = 1_100
STALLED_BODIES = 80
SLOW_READERS = 20
SESSIONS = 1_100
UNKNOWN_ARGUMENTS = 250_000
GUESSES_PER_SECOND = 100
UNKNOWN_KEY_TOKENS_PER_SECOND = 20
ANSWER_SECONDS = 30.0

VERSION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}


def tool_call(tool: str, arguments: str, meta: str = "") -> bytes:
    """A JSON-RPC request of the stateless protocol; `arguments` and `meta` are JSON."""
    params = f'{{"name":"{tool}","arguments":{arguments},"_meta":{meta or json.dumps(META)}}}'
    return f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()


LISTING = f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{json.dumps(META)}}}}}'.encode()


def post(token: str, length: int | None, tool: str = "recall", path: str = "/mcp", version: str = VERSION) -> bytes:
    """The head of a request; a body of unknown length is chunked."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    name = f"Mcp-Method: tools/call\r\nMcp-Name: {tool}" if tool else "Mcp-Method: tools/list"
    routing = f"{name}\r\nMcp-Protocol-Version: {version}\r\n" if version else ""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n{routing}"
        f"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{size}\r\n\r\n"
    ).encode()


@dataclass(frozen=True)
class Target:
    port: int
    token: str
    """Of the attacker: a valid one of another being."""
    issuer: str

    async def exchange(self, data: bytes) -> bytes:
        """The beginning of the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            with suppress(ConnectionError):
                writer.write(data)
                await writer.drain()
            async with asyncio.timeout(ANSWER_SECONDS):
                return await reader.read(1_000)
        finally:
            writer.close()

    async def hold(self, data: bytes) -> None:
        """Send no more than this, and wait to be thrown out."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            while await reader.read(4_096):
                pass
        finally:
            writer.close()


async def forever(times: int, attack: Callable[[], Awaitable[object]], *, pause_seconds: float = 1.0) -> None:
    """So many of them at once, each again when it has ended."""

    async def repeat(number: int) -> None:
        await asyncio.sleep(number * pause_seconds / times)
        while True:
            with suppress(OSError, TimeoutError):
                await attack()
            await asyncio.sleep(pause_seconds)

    async with asyncio.TaskGroup() as tasks:
        for number in range(times):
            tasks.create_task(repeat(number))


async def send_repeatedly(target: Target, body: bytes, *, chunk_bytes: int = 0) -> None:
    """A request a second, whole and valid as HTTP."""
    data = post(target.token, None if chunk_bytes else len(body))
    if chunk_bytes:
        chunks = (body[start : start + chunk_bytes] for start in range(0, len(body), chunk_bytes))
        data += b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    else:
        data += body
    await forever(1, lambda: target.exchange(data))


async def silent_sockets(target: Target) -> None:
    """Connections that never say anything."""
    await forever(SILENT_SOCKETS, lambda: target.hold(b""), pause_seconds=2.0)


async def slow_heads(target: Target) -> None:
    """Connections that never finish the head of their first request."""
    await forever(200, lambda: target.hold(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Wait: "), pause_seconds=2.0)


async def unknown_arguments(target: Target) -> None:
    arguments = "{" + ",".join(f'"x{n}":{n}' for n in range(UNKNOWN_ARGUMENTS)) + "}"
    await send_repeatedly(target, tool_call("recall", arguments))


async def unknown_metadata(target: Target) -> None:
    more = ",".join(f'"x{n}":{n}' for n in range(UNKNOWN_ARGUMENTS))
    await send_repeatedly(target, tool_call("recall", '{"query":"x"}', json.dumps(META)[:-1] + "," + more + "}"))


async def wide_nesting(target: Target) -> None:
    await send_repeatedly(target, tool_call("recall", '{"query":[' + ",".join(["[[],{}]"] * 150_000) + "]}"))


async def deep_nesting(target: Target) -> None:
    await send_repeatedly(target, tool_call("recall", '{"query":' + "[" * 400_000 + "]" * 400_000 + "}"))


async def within_limits(target: Target) -> None:
    """As much as is let through: what a megabyte may cost."""
    arguments = "{" + ",".join(f'"{n:04}{"x" * 90}":1' for n in range(9_000)) + "}"
    await send_repeatedly(target, tool_call("recall", arguments))


async def one_byte_chunks(target: Target) -> None:
    await send_repeatedly(target, tool_call("recall", '{"query":"' + "x" * 100_000 + '"}'), chunk_bytes=1)


async def stalled_bodies(target: Target) -> None:
    """Requests whose body never comes."""
    await forever(STALLED_BODIES, lambda: target.hold(post(target.token, 1_000) + b"{"))


async def slow_readers(target: Target) -> None:
    """Many requests in a row, none of whose answers is read."""
    requests = post(target.token, len(LISTING), tool="") + LISTING

    async def ask_without_reading() -> None:
        with socket.socket() as connection:
            connection.setblocking(False)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(connection, ("127.0.0.1", target.port))
            async with asyncio.timeout(ANSWER_SECONDS):
                while True:
                    await loop.sock_sendall(connection, requests)

    await forever(SLOW_READERS, ask_without_reading)


async def sessions(target: Target) -> None:
    """Sessions that are begun and never ended."""
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}).encode()
    data = post(target.token, len(body), version="") + body
    for _ in range(SESSIONS):
        with suppress(OSError, TimeoutError):
            await target.exchange(data)
        await asyncio.sleep(0.01)
    await forever(1, lambda: target.exchange(data))


async def wrong_tokens(target: Target) -> None:
    """Guesses, on paths that exist and on others."""
    numbers = count()

    async def guess() -> None:
        number = next(numbers)
        token = f"mdl_{number:012x}_{'A' * 43}"
        await target.exchange(post(token, 0, path=("/mcp", "/nowhere")[number % 2]))

    await forever(10, guess, pause_seconds=10 / GUESSES_PER_SECOND)


async def unknown_keys(target: Target) -> None:
    """JWTs that name keys which only the issuer could know; it hangs."""
    key, numbers = generate_private_key(SECP256R1()), count()

    async def ask() -> None:
        claims = {"iss": target.issuer, "sub": "x", "aud": "x", "exp": int(time.time()) + 300}
        headers = {"kid": f"unknown-{next(numbers)}", "typ": "at+jwt"}
        await target.exchange(post(jwt.encode(claims, key, algorithm="ES256", headers=headers), 0))

    await forever(UNKNOWN_KEY_TOKENS_PER_SECOND * 5, ask, pause_seconds=5.0)


ATTACKS: Mapping[str, Callable[[Target], Awaitable[None]]] = {
    attack.__name__: attack
    for attack in (
        silent_sockets, slow_heads, unknown_arguments, unknown_metadata, wide_nesting, deep_nesting, within_limits,
        one_byte_chunks, stalled_bodies, slow_readers, sessions, wrong_tokens, unknown_keys,
    )
}  # fmt: skip


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attacks", nargs="+", choices=ATTACKS)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--issuer", required=True)
    arguments = parser.parse_args()
    target = Target(arguments.port, arguments.token, arguments.issuer)
    await asyncio.gather(*(ATTACKS[name](target) for name in arguments.attacks))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
