"""Both adapters against a server of the tests' own, by the real SDKs; and what only one of them does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from madeleine.inference.language.config import LanguageModelConfig
from madeleine.inference.language.structured_model import make_language_model_if_configured
from madeleine.memory.errors import LanguageModelUnavailable
from madeleine.memory.language_model import ModelCallCost
from tests.contracts.language_model_contract import GOOD, PRIVATE, Kind, LanguageModelContract, Open, prompt
from tests.language.stub import KEY, Protocol, Stub, http_error, language_server, model_says
from tests.rows import for_each_row
from tests.waiting import DEADLOCK_S

ROOT = Path(__file__).parents[2]


class TestAnthropic(LanguageModelContract):
    protocol: Protocol = "anthropic"

    @pytest.mark.parametrize(
        ("model", "thinking"),
        [
            ("claude-haiku-5-5", "disabled"),
            ("claude-sonnet-5", "disabled"),
            ("claude-sonnet-5-5", "between_tools"),
            ("claude-haiku-4-5", None),
            ("claude-opus-5-5", None),
        ],
    )
    async def test_thoughts_take_no_room_from_the_answer(
        self, opened: Open, stub: Stub, spent: list[ModelCallCost], model: str, thinking: str | None
    ) -> None:
        async with opened([model_says(GOOD)], small_model=model) as found:
            await found.answer_prompt(prompt(), Kind, spent.append)
        [asked] = stub.asked
        assert asked.body.get("thinking", {}).get("type") == thinking
        assert asked.body["max_tokens"] == (8_700 if "opus" in model else 700)

    async def test_a_model_that_cannot_stop_thinking_still_gets_its_schema(
        self, opened: Open, stub: Stub, spent: list[ModelCallCost]
    ) -> None:
        async with opened([http_error(400), model_says(GOOD)], small_model="claude-haiku-5-5") as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
        assert [("thinking" in asked.body, asked.form) for asked in stub.asked] == [
            (True, "json_schema"),
            (False, "json_schema"),
        ]

    async def test_variables_of_the_sdk_change_nothing(
        self, opened: Open, stub: Stub, spent: list[ModelCallCost], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "another")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        async with opened([model_says(GOOD)]) as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
        assert stub.asked[0].key == KEY
        assert "another" not in str(stub.asked[0].headers)


class TestOpenAI(LanguageModelContract):
    protocol: Protocol = "openai"

    async def test_a_server_of_local_models_needs_no_key(self, stub: Stub, spent: list[ModelCallCost]) -> None:
        stub.answers = [model_says(GOOD)]
        config = LanguageModelConfig(protocol="openai", url=stub.openai_url, small_model="s", large_model="l")
        model = make_language_model_if_configured(config, "")
        assert model is not None
        await model.answer_prompt(prompt(), Kind, spent.append)
        await model.aclose()

    async def test_json_is_asked_for_before_prose(self, opened: Open, stub: Stub, spent: list[ModelCallCost]) -> None:
        async with opened([http_error(422), model_says(GOOD)]) as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
        assert [asked.form for asked in stub.asked] == ["json_schema", "json_object"]

    async def test_a_server_that_counts_no_tokens_is_counted_for(
        self, opened: Open, spent: list[ModelCallCost]
    ) -> None:
        """Else a budget would never be spent."""
        async with opened([model_says(GOOD, input_tokens=0, output_tokens=0)]) as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
        [one] = spent
        assert one.input_tokens > 5
        assert one.output_tokens > 5

    async def test_variables_of_the_sdk_change_nothing(
        self, opened: Open, stub: Stub, spent: list[ModelCallCost], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "another")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
        async with opened([model_says(GOOD)]) as model:
            await model.answer_prompt(prompt(), Kind, spent.append)
        assert stub.asked[0].key == KEY


ASK = """
import asyncio, sys
from madeleine.inference.language.config import LanguageModelConfig
from madeleine.inference.language.structured_model import make_language_model_if_configured
from madeleine.server.logs import start_logging
from tests.contracts.language_model_contract import Kind, prompt

async def main(protocol, url, key):
    start_logging("debug")
    config = LanguageModelConfig(protocol=protocol, url=url, small_model="s", large_model="l", retries=1)
    model = make_language_model_if_configured(config, key)
    await model.answer_prompt(prompt(), Kind, print)
    await model.aclose()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
def test_an_sdk_that_is_told_to_log_all_that_it_sends_does_not(protocol: Protocol) -> None:
    """By variables that somebody set for another program."""
    talkative = {"ANTHROPIC_LOG": "debug", "OPENAI_LOG": "debug", "PATH": ""}
    with language_server([http_error(500, message=PRIVATE), model_says(GOOD)]) as stub:
        found = subprocess.run(
            [sys.executable, "-c", ASK, protocol, stub.url(protocol), KEY],
            cwd=ROOT, env=talkative, capture_output=True, text=True, check=False, timeout=DEADLOCK_S,
        )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert "input_tokens=100" in found.stdout
    for secret in (KEY, PRIVATE):
        assert secret not in found.stderr


@for_each_row(("protocol", "url"), [("anthropic", ""), ("anthropic", "http://127.0.0.1:1"), ("openai", "")])
def test_without_a_key_there_is_no_model(protocol: Protocol, url: str) -> None:
    config = LanguageModelConfig(protocol=protocol, url=url, small_model="s", large_model="l")
    assert make_language_model_if_configured(config, "") is None
    assert make_language_model_if_configured(None, KEY) is None


@pytest.mark.slow
def test_no_sdk_is_imported_before_a_model_is_asked() -> None:
    """They take longer to import than all that Madeleine needs to answer."""
    code = (
        "import sys; from madeleine.inference.language.structured_model import make_language_model_if_configured as o; "
        "import madeleine.server.wiring.open_memory;"
        "from madeleine.inference.language.config import LanguageModelConfig as C;"
        "o(C(protocol='anthropic', small_model='s', large_model='l'), 'k');"
        "sys.exit(bool({'anthropic', 'openai'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_an_error_names_its_model_and_the_next_step() -> None:
    error = LanguageModelUnavailable("m", "it refused the key (401). Check the key and what it is allowed.")
    assert str(error).startswith("The language model m is not available: ")
