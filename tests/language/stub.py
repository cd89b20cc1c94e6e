"""A language model of the tests' own: an HTTP server on a free port of the loopback, gone afterwards, that speaks
Anthropic's Messages API and OpenAI's chat completions as far as the real SDKs need them.

In one process:

    with language_server([model_says({"kind": "event"}), http_error(529), model_says("no JSON")]) as stub:
        config = LanguageConfig(protocol="anthropic", url=stub.anthropic_url, small_model="s", large_model="l")
        model = make_language_model_if_configured(config, "a key")
        ...
    assert [asked.model for asked in stub.asked] == ["s", "l", "l"]

For another process, such as a server over stdio, its environment:

    with language_server(answer) as stub:
        more = stub.environment("anthropic")  # or "openai"

What it answers is a list, taken from the front (beyond its end it says 500 and the test has `stub.unexpected`), or a
function of the request, called in the server's thread:

    def answer(asked: ModelRequest) -> StubAnswer:
        if asked.shape == "Classified":  # the name of the pydantic class that was asked for
            return model_says({"ids": re.findall(...asked.text)})
        return http_error(500)

Answers: `model_says` (an object is sent as JSON, a string as it is: broken JSON, foreign ids, prose), with `end` "cut
off" or "declined"; `http_error` with any status, by default to be retried at once; a `truncated_body()` or
`truncated_stream()`; `no_answer()` until the server ends; `raw_body()` bytes; and `held_answer(event, answer)`: the
answer, when the event is set. `await stub.came(2)` waits until two requests are here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any, Literal

Protocol = Literal["anthropic", "openai"]
End = Literal["said", "cut off", "declined"]
WAIT_SECONDS = 60.0
KEY = "sk-test-" + "7Qx" * 8
"""What `environment` gives; look for it where no key may be."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, retries included."""

    protocol: Protocol
    key: str
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def system(self) -> str:
        if self.protocol == "anthropic":
            return str(self.body.get("system", ""))
        return str(self.body["messages"][0]["content"])

    @property
    def turns(self) -> list[tuple[str, str]]:
        """(role, content), without the system's."""
        return [(turn["role"], turn["content"]) for turn in self.body["messages"] if turn["role"] != "system"]

    @property
    def text(self) -> str:
        """What the first turn says: the prompt's text, also when an answer is complained of."""
        return self.turns[0][1]

    @property
    def form(self) -> str:
        """What the answer is held to: json_schema, json_object, or ""."""
        if self.protocol == "anthropic":
            found = self.body.get("output_config", {}).get("format", {})
        else:
            found = self.body.get("response_format", {})
        return str(found.get("type", ""))

    @property
    def schema(self) -> dict[str, Any]:
        if self.form == "json_schema":
            of_openai = self.protocol == "openai"
            found = self.body["response_format"]["json_schema"] if of_openai else self.body["output_config"]["format"]
            return dict(found["schema"])
        written = re.search(r"JSON Schema, and with nothing else:\n(.*)\Z", self.system, re.S)
        return dict(json.loads(written[1])) if written else {}

    @property
    def shape(self) -> str:
        """The name of the class that was asked for."""
        return str(self.schema.get("title", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    text: str
    end: End
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """`promised` bytes are announced, `body` is sent, and the connection closed; None: in chunks without an end."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    promised: int | None


@dataclass(frozen=True, slots=True)
class HeldAnswer:
    until: Event | None
    then: ModelAnswer | RawAnswer | None


StubAnswer = ModelAnswer | RawAnswer | HeldAnswer


def model_says(content: object, *, end: End = "said", input_tokens: int = 100, output_tokens: int = 20) -> ModelAnswer:
    text = content if isinstance(content, str) else json.dumps(content)
    return ModelAnswer(text=text, end=end, input_tokens=input_tokens, output_tokens=output_tokens)


def http_error(
    status: int, code: str = "", *, message: str = "no", headers: Mapping[str, str] | None = None
) -> RawAnswer:
    """An error of the API. The SDKs try again, without waiting, where the status allows it."""
    error = {"type": code or "some_error", "code": code or "some_error", "message": message}
    body = json.dumps({"type": "error", "error": error}).encode()
    return RawAnswer(status, {"retry-after-ms": "1"} | dict(headers or {}), body, len(body))


def raw_body(body: bytes, *, status: int = 200, content_type: str = "application/json") -> RawAnswer:
    return RawAnswer(status, {"content-type": content_type}, body, len(body))


def truncated_body() -> RawAnswer:
    """Of a body: then the connection is cut."""
    return RawAnswer(200, {}, b'{"id": "msg_1", "type": "message", "content": [{"type": "te', 4_000)


def truncated_stream() -> RawAnswer:
    """Of events, though nobody asked for a stream: then the connection is cut."""
    event = b'event: message_start\ndata: {"type": "message_start", "message": {"id": "msg_1"}}\n\n'
    return RawAnswer(200, {"content-type": "text/event-stream"}, event, None)


def no_answer() -> HeldAnswer:
    """The request is read, and nothing is ever said."""
    return HeldAnswer(None, None)


def held_answer(until: Event, then: ModelAnswer | RawAnswer) -> HeldAnswer:
    return HeldAnswer(until, then)


@dataclass
class Stub:
    port: int
    answers: list[StubAnswer] | Callable[[ModelRequest], StubAnswer]
    """May be changed at any time."""
    asked: list[ModelRequest] = field(default_factory=list)
    unexpected: list[ModelRequest] = field(default_factory=list)
    """Requests for which no answer was left."""
    closing: Event = field(default_factory=Event)
    _news: Condition = field(default_factory=Condition)

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def url(self, protocol: Protocol) -> str:
        return self.anthropic_url if protocol == "anthropic" else self.openai_url

    def environment(self, protocol: Protocol = "anthropic", key: str = KEY) -> dict[str, str]:
        """For a server process that is to ask this model, without retries."""
        return {
            "MADELEINE_LLM": protocol,
            "MADELEINE_LLM_URL": self.url(protocol),
            "MADELEINE_LLM_API_KEY": key,
            "MADELEINE_LLM_SMALL_MODEL": "small",
            "MADELEINE_LLM_LARGE_MODEL": "large",
            "MADELEINE_LLM_RETRIES": "0",
        }

    async def came(self, count: int) -> None:
        """Returns when so many requests were asked, in all."""
        await asyncio.to_thread(self.wait_for, count)

    def wait_for(self, count: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: len(self.asked) >= count, timeout=WAIT_SECONDS), self.asked

    def take(self, asked: ModelRequest) -> StubAnswer:
        with self._news:
            self.asked.append(asked)
            self._news.notify_all()
            if callable(self.answers):
                return self.answers(asked)
            if self.answers:
                return self.answers.pop(0)
            self.unexpected.append(asked)
        return http_error(500, headers={"x-should-retry": "false"})


@contextmanager
def language_server(answers: Sequence[StubAnswer] | Callable[[ModelRequest], StubAnswer] = ()) -> Iterator[Stub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    stub = Stub(server.server_address[1], answers if callable(answers) else list(answers))
    server.RequestHandlerClass = type("Handler", (_Handler,), {"stub": stub})
    server.daemon_threads = False
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="language stub", daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    stub: Stub
    protocol_version = "HTTP/1.1"
    timeout = WAIT_SECONDS

    def do_POST(self) -> None:
        self.close_connection = True
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        match self.path.partition("?")[0]:
            case "/v1/messages":
                asked = ModelRequest("anthropic", key, headers, body)
            case "/v1/chat/completions":
                asked = ModelRequest("openai", key, headers, body)
            case _:
                self._send(http_error(404))
                return
        self._send(self._unheld(self.stub.take(asked)), asked)

    def _unheld(self, answer: StubAnswer) -> ModelAnswer | RawAnswer | None:
        if not isinstance(answer, HeldAnswer):
            return answer
        if answer.until is None:
            self.stub.closing.wait(WAIT_SECONDS)
        else:
            assert answer.until.wait(WAIT_SECONDS)
        return answer.then

    def _send(self, answer: ModelAnswer | RawAnswer | None, asked: ModelRequest | None = None) -> None:
        if isinstance(answer, ModelAnswer):
            assert asked is not None
            written = json.dumps(_WRITTEN[asked.protocol](asked.model, answer)).encode()
            answer = RawAnswer(200, {}, written, len(written))
        if answer is None:
            return
        length = {"transfer-encoding": "chunked"} if answer.promised is None else {"content-length": answer.promised}
        try:
            self.send_response(answer.status)
            for name, value in ({"content-type": "application/json"} | dict(answer.headers) | length).items():
                self.send_header(name, str(value))
            self.send_header("connection", "close")
            self.end_headers()
            chunk = b"%x\r\n%s\r\n" % (len(answer.body), answer.body)
            self.wfile.write(chunk if answer.promised is None else answer.body)
        except OSError:  # the client has gone: a timeout, or it was cancelled
            pass

    def log_message(self, format: str, *args: object) -> None:
        pass


def _as_message(model: str, answer: ModelAnswer) -> dict[str, Any]:
    ends = {"said": "end_turn", "cut off": "max_tokens", "declined": "refusal"}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": answer.text}] if answer.text else [],
        "stop_reason": ends[answer.end],
        "stop_sequence": None,
        "usage": {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens},
    }


def _as_completion(model: str, answer: ModelAnswer) -> dict[str, Any]:
    ends = {"said": "stop", "cut off": "length", "declined": "content_filter"}
    counted = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens}
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {"index": 0, "finish_reason": ends[answer.end], "message": {"role": "assistant", "content": answer.text}}
        ],
    }
    total = {"total_tokens": answer.input_tokens + answer.output_tokens}
    return completion | ({"usage": counted | total} if total["total_tokens"] else {})


_WRITTEN: Mapping[Protocol, Callable[[str, ModelAnswer], dict[str, Any]]] = {
    "anthropic": _as_message,
    "openai": _as_completion,
}
