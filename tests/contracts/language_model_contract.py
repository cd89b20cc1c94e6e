"""What every language model must do. An adapter's tests inherit `LanguageModelContract` and say its `protocol`."""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from madeleine.inference.language.config import LanguageModelConfig
from madeleine.inference.language.structured_model import StructuredLanguageModel, make_language_model_if_configured
from madeleine.memory.errors import LanguageModelUnavailable, TokenBudgetTooSmallForNextCall, UnusableAnswer
from madeleine.memory.language_model import LanguageModelSize, ModelCallCost, Prompt
from tests.doubles import metered
from tests.language.stub import (
    KEY,
    Protocol,
    Stub,
    StubAnswer,
    held_answer,
    http_error,
    language_server,
    model_says,
    no_answer,
    raw_body,
    truncated_body,
    truncated_stream,
)

PRIVATE = "Zoé buried the xylophoniser"


class Kind(BaseModel):
    """A shape with all that shapes have: literals, bounds, lists, nesting, what may be left out."""

    model_config = ConfigDict(extra="forbid")

    class Part(BaseModel):
        id: str = Field(max_length=40)
        weight: float = Field(ge=0, le=1)

    kind: Literal["event", "lesson"]
    parts: list[Part] = []
    why: str | None = None


GOOD = {"kind": "lesson", "parts": [{"id": "a", "weight": 0.5}], "why": None}
WRONG = {"kind": PRIVATE, PRIVATE: 1}
Costs = list[ModelCallCost]
Open = Callable[..., AbstractAsyncContextManager[StructuredLanguageModel]]


def prompt(size: LanguageModelSize = "small", max_tokens: int = 700) -> Prompt:
    return Prompt(purpose="classify", system="Say what kind it is.", text=PRIVATE, size=size, max_tokens=max_tokens)


class LanguageModelContract:
    protocol: Protocol

    @pytest.fixture
    def stub(self) -> Iterator[Stub]:
        with language_server() as stub:
            yield stub
        assert stub.unexpected == []

    @pytest.fixture
    def spent(self) -> list[ModelCallCost]:
        return []

    @pytest.fixture
    def opened(self, stub: Stub) -> Open:
        @asynccontextmanager
        async def opened(answers: Sequence[StubAnswer] = (), **settings: Any) -> AsyncIterator[StructuredLanguageModel]:
            stub.answers = list(answers)
            given: dict[str, Any] = {"url": stub.url(self.protocol), "small_model": "small", "large_model": "large"}
            given |= {"protocol": self.protocol, "retries": 0} | settings
            model = make_language_model_if_configured(LanguageModelConfig(**given), KEY)
            assert model is not None
            try:
                yield model
            finally:
                await model.aclose()

        return opened

    # --- answers ------------------------------------------------------------------------------------------------

    async def test_an_answer_comes_in_its_shape_and_is_counted(self, opened: Open, stub: Stub, spent: Costs) -> None:
        async with opened([model_says(GOOD, input_tokens=210, output_tokens=33)]) as model:
            assert await model.answer_prompt(prompt(), Kind, spent.append) == Kind.model_validate(GOOD)
        assert spent == [ModelCallCost(purpose="classify", model="small", input_tokens=210, output_tokens=33, usd=None)]
        [asked] = stub.asked
        assert (asked.key, asked.model, asked.shape) == (KEY, "small", "Kind")
        assert asked.system.startswith("Say what kind it is.")
        assert asked.turns == [("user", PRIVATE)]
        assert 700 in asked.body.values()

    async def test_the_answer_is_held_to_a_schema(self, opened: Open, stub: Stub, spent: Costs) -> None:
        async with opened([model_says(GOOD)]) as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
        [asked] = stub.asked
        assert asked.form == "json_schema"
        assert asked.schema["additionalProperties"] is False
        assert "kind" in asked.schema["properties"]

    async def test_each_size_has_its_model_and_each_model_its_price(self, opened: Open, spent: Costs) -> None:
        names = {"small_model": "claude-haiku-4-5", "large_model": "own-7b", "prices": (("own", (2.0, 4.0)),)}
        counted: dict[str, Any] = {"input_tokens": 1_000_000, "output_tokens": 500_000}
        async with opened([model_says(GOOD, **counted), model_says(GOOD, **counted)], **names) as model:
            await model.answer_prompt(prompt("small"), Kind, spent.append)
            await model.answer_prompt(prompt("large"), Kind, spent.append)
        assert [(one.model, one.usd) for one in spent] == [("claude-haiku-4-5", 3.5), ("own-7b", 4.0)]

    @pytest.mark.parametrize(
        "text",
        [
            '```json\n{"kind": "event"}\n```',
            'Here it is: {"kind": "event"}. Anything else?',
            '<think>{"kind": "lesson"}?</think>\n{"kind": "event"}',
        ],
    )
    async def test_json_is_found_in_what_is_around_it(self, opened: Open, spent: Costs, text: str) -> None:
        async with opened([model_says(text)]) as model:
            assert await model.answer_prompt(prompt(), Kind, spent.append) == Kind(kind="event")

    async def test_several_may_ask_at_once(self, opened: Open, stub: Stub, spent: Costs) -> None:
        async with opened([model_says(GOOD)] * 8) as model:
            results = await asyncio.gather(*(model.answer_prompt(prompt(), Kind, spent.append) for _ in range(8)))
        assert len(results) == len(spent) == len(stub.asked) == 8

    # --- answers that cannot be used ------------------------------------------------------------------------------

    @pytest.mark.parametrize("answer", [WRONG, '{"kind": "less', "I would rather not use JSON.", "", "[" * 5_000])
    async def test_an_invalid_answer_is_sent_back_once_with_a_complaint(
        self, opened: Open, stub: Stub, spent: Costs, answer: object
    ) -> None:
        async with opened([model_says(answer), model_says(GOOD)]) as model:
            assert (await metered(model, spent).answer_prompt(prompt(), Kind, lambda kind: kind)).kind == "lesson"
        assert len(spent) == 2
        roles = [role for role, _ in stub.asked[1].turns]
        assert roles == ["user", "assistant", "user"]
        assert "cannot be used" in stub.asked[1].turns[2][1]

    @pytest.mark.parametrize("answer", [WRONG, "no JSON"])
    async def test_two_invalid_answers_are_unusable_and_counted(
        self, opened: Open, spent: Costs, answer: object
    ) -> None:
        async with opened([model_says(answer)] * 2) as model:
            with pytest.raises(UnusableAnswer) as caught:
                await metered(model, spent).answer_prompt(prompt(), Kind, lambda kind: kind)
        assert len(spent) == 2
        quotes_nobody(caught.value)

    @pytest.mark.parametrize(("end", "word"), [("cut off", "700 tokens"), ("declined", "declined")])
    async def test_an_answer_without_an_end_is_unusable_at_once_and_counted(
        self, opened: Open, spent: Costs, end: Literal["cut off", "declined"], word: str
    ) -> None:
        async with opened([model_says('{"kind": "event"', end=end)]) as model:
            with pytest.raises(UnusableAnswer, match=word):
                await model.answer_prompt(prompt(), Kind, spent.append)
        assert [one.tokens for one in spent] == [120]

    async def test_the_second_call_is_not_made_if_it_exceeds_the_budget(
        self, opened: Open, stub: Stub, spent: Costs
    ) -> None:
        async with opened([model_says("no JSON")]) as model:
            with pytest.raises(TokenBudgetTooSmallForNextCall):
                await metered(model, spent, budget=800).answer_prompt(prompt(), Kind, lambda kind: kind)
        assert len(stub.asked) == len(spent) == 1

    # --- no answer ------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("status", [429, 500, 503, 529])
    async def test_a_server_that_cannot_now_is_asked_again(
        self, opened: Open, stub: Stub, spent: Costs, status: int
    ) -> None:
        async with opened([http_error(status), http_error(status), model_says(GOOD)], retries=2) as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
        assert len(stub.asked) == 3
        assert len(spent) == 1

    async def test_a_connection_that_is_cut_is_tried_again(self, opened: Open, stub: Stub, spent: Costs) -> None:
        async with opened([truncated_body(), model_says(GOOD)], retries=1) as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
        assert len(stub.asked) == 2

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (http_error(401, "authentication_error", message=f"{KEY} is not valid"), "401 authentication_error"),
            (http_error(403, message=KEY), "refused the key"),
            (http_error(404, "not_found_error"), "no such model"),
            (http_error(413), "too long"),
            (http_error(429, "rate_limit_error", message=KEY), "429 rate_limit_error"),
            (http_error(500, KEY, message=PRIVATE), "500"),
            (http_error(529, "overloaded_error"), "529 overloaded_error"),
            (truncated_body(), "hung up"),
            (truncated_stream(), "hung up"),
            (raw_body(b"<html>Welcome</html>", content_type="text/html"), "MADELEINE_LLM_URL"),
            (raw_body(b'{"half":'), "MADELEINE_LLM_URL"),
            (raw_body(b'{"hello": "world"}'), "MADELEINE_LLM_URL"),
            (raw_body(b'{"content": 3, "choices": 4}'), "MADELEINE_LLM_URL"),
            (raw_body(b"null"), "MADELEINE_LLM_URL"),
            (raw_body(b"", status=302), "302"),
        ],
    )
    async def test_who_does_not_answer_is_unavailable_and_the_reason_quotes_nobody(
        self, opened: Open, spent: Costs, answer: StubAnswer, words: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with opened([answer]) as model:
            with pytest.raises(LanguageModelUnavailable) as caught:
                await model.answer_prompt(prompt(), Kind, spent.append)
        assert words in str(caught.value)
        assert spent == []
        quotes_nobody(caught.value)
        assert not any(secret in caplog.text for secret in (KEY, PRIVATE))

    async def test_silence_ends_with_the_timeout(self, opened: Open, spent: Costs) -> None:
        async with opened([no_answer()], timeout_seconds=0.2) as model:
            with pytest.raises(LanguageModelUnavailable, match=r"within 0\.2 s"):
                await model.answer_prompt(prompt(), Kind, spent.append)
        assert spent == []

    async def test_nobody_at_the_address_is_unavailable(self, opened: Open, spent: Costs) -> None:
        with language_server() as gone:
            url = gone.url(self.protocol)
        async with opened(url=url) as model:
            with pytest.raises(LanguageModelUnavailable, match="cannot be reached"):
                await model.answer_prompt(prompt(), Kind, spent.append)

    @pytest.mark.parametrize(
        "headers",
        [
            {"retry-after-ms": "3600000"},
            {"retry-after-ms": "", "retry-after": "86400"},
            {"retry-after-ms": "", "retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"},
        ],
    )
    async def test_nobody_waits_for_hours(
        self, opened: Open, stub: Stub, spent: Costs, headers: dict[str, str]
    ) -> None:
        async with opened([http_error(429, headers=headers)], retries=5) as model:
            with pytest.raises(LanguageModelUnavailable, match="429"):
                await model.answer_prompt(prompt(), Kind, spent.append)
        assert len(stub.asked) == 1

    async def test_a_redirect_gets_no_key(self, opened: Open, stub: Stub, spent: Costs) -> None:
        with language_server() as thief:
            location = {"location": f"{thief.url(self.protocol)}/messages"}
            async with opened([http_error(307, headers=location)]) as model:
                with pytest.raises(LanguageModelUnavailable):
                    await model.answer_prompt(prompt(), Kind, spent.append)
        assert thief.asked == []

    async def test_cancellation_passes(self, opened: Open, stub: Stub, spent: Costs) -> None:
        async with opened([no_answer()], retries=3) as model:
            task = asyncio.create_task(model.answer_prompt(prompt(), Kind, spent.append))
            await stub.came(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    async def test_a_caller_who_has_waited_enough_is_free(self, opened: Open, stub: Stub, spent: Costs) -> None:
        go = threading.Event()
        async with opened([held_answer(go, model_says(GOOD))]) as model:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await model.answer_prompt(prompt(), Kind, spent.append)
            go.set()

    # --- servers that know no schemas -------------------------------------------------------------------------------

    async def test_a_server_that_knows_no_schemas_is_told_in_words_and_is_not_asked_in_vain_again(
        self, opened: Open, stub: Stub, spent: Costs
    ) -> None:
        async with opened() as model:
            stub.answers = lambda asked: http_error(400) if asked.form else model_says(GOOD)
            assert await model.answer_prompt(prompt(), Kind, spent.append) == Kind.model_validate(GOOD)
            tried = len(stub.asked)
            await model.answer_prompt(prompt(), Kind, spent.append)
        assert len(spent) == 2
        assert len(stub.asked) == tried + 1
        assert stub.asked[-1].form == ""
        assert stub.asked[-1].shape == "Kind"

    async def test_a_request_that_is_refused_in_every_form_is_unavailable(
        self, opened: Open, stub: Stub, spent: Costs
    ) -> None:
        async with opened() as model:
            stub.answers = lambda asked: http_error(400, "invalid_request_error")
            with pytest.raises(LanguageModelUnavailable, match="400 invalid_request_error"):
                await model.answer_prompt(prompt(), Kind, spent.append)
        assert len(stub.asked) <= 3

    # --- its end ----------------------------------------------------------------------------------------------------

    async def test_closed_it_can_be_asked_again(self, opened: Open, spent: Costs) -> None:
        async with opened([model_says(GOOD), model_says(GOOD)]) as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
            await model.aclose()
            await model.aclose()
            await model.answer_prompt(prompt(), Kind, spent.append)

    async def test_nothing_that_can_be_printed_holds_the_key(self, opened: Open, spent: Costs) -> None:
        async with opened([model_says(GOOD)]) as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
            assert KEY not in repr(model) + str(model)


def quotes_nobody(error: BaseException) -> None:
    """Neither the key nor the question nor the answer, in whatever led to it."""
    told = "".join(traceback.format_exception(error, chain=True))
    seen = [error]
    while before := seen[-1].__cause__ or seen[-1].__context__:
        seen.append(before)
    told += "".join(f"{one!s} {one!r} {vars(one)}" for one in seen)
    for secret in (KEY, PRIVATE):
        assert secret not in told
