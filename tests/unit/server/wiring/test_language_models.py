"""Whose key a call is made by, and that what is open is closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.errors import InvalidInput
from madeleine.memory.language_model import ModelCallCost
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring import language_models as language
from madeleine.server.wiring.language_models import LanguageModelLease, LanguageModelPool
from tests.contracts.language_model_contract import GOOD, Kind, prompt
from tests.language.stub import KEY, Stub, language_server, model_says

OWN, ADAS, BOBS = "key-own", "key-ada", "key-bob"


@pytest.fixture
def stub() -> Iterator[Stub]:
    with language_server(lambda asked: model_says(GOOD)) as stub:
        yield stub


@pytest.fixture
async def models(stub: Stub, tmp_path: Path) -> AsyncIterator[LanguageModelPool]:
    async with LanguageModelPool(settings(tmp_path, llm_url=stub.anthropic_url, llm_api_key=OWN)) as models:
        yield models


def settings(data_dir: Path, **more: Any) -> Settings:
    return Settings.model_validate({"data_dir": data_dir, "llm": "anthropic", "llm_retries": 0} | more)


async def asked(leased: LanguageModelLease) -> bool:
    spent: list[ModelCallCost] = []
    async with leased as model:
        if model is None:
            return False
        await model.answer_prompt(prompt(), Kind, spent.append)
    return True


async def test_a_client_without_a_key_asks_by_the_servers(
    models: LanguageModelPool, stub: Stub, tmp_path: Path
) -> None:
    assert await asked(models.lease_model_for_this_process())
    assert await asked(models.lease_model_for_api_key(""))
    assert await asked(models.lease_model_for_client(Settings(data_dir=tmp_path)))
    assert [one.key for one in stub.asked] == [OWN] * 3


async def test_each_call_is_made_by_the_key_of_its_client(
    models: LanguageModelPool, stub: Stub, tmp_path: Path
) -> None:
    ada = settings(tmp_path, llm_url=stub.anthropic_url, llm_api_key=ADAS)
    calls = [
        models.lease_model_for_client(ada),
        models.lease_model_for_api_key(BOBS),
        models.lease_model_for_this_process(),
        models.lease_model_for_client(ada),
        models.lease_model_for_api_key(BOBS),
    ]
    assert all(await asyncio.gather(*map(asked, calls)))
    assert sorted(one.key for one in stub.asked) == [ADAS, ADAS, BOBS, BOBS, OWN]


async def test_the_servers_key_goes_to_no_address_of_a_client(
    models: LanguageModelPool, stub: Stub, tmp_path: Path
) -> None:
    with language_server(lambda asked: model_says(GOOD)) as theirs:
        client = Settings(data_dir=tmp_path, llm_url=theirs.openai_url, llm_large_model="m")
        assert await asked(models.lease_model_for_client(client))
        assert [one.key for one in theirs.asked] == ["none"]
        client = Settings(data_dir=tmp_path, llm="anthropic", llm_url=theirs.anthropic_url)
        assert not await asked(models.lease_model_for_client(client))
    assert stub.asked == []


async def test_a_client_may_do_without(models: LanguageModelPool, stub: Stub, tmp_path: Path) -> None:
    assert not await asked(models.lease_model_for_client(settings(tmp_path, llm="off", llm_api_key=ADAS)))
    assert stub.asked == []


async def test_a_server_that_is_off_takes_no_key(tmp_path: Path) -> None:
    async with LanguageModelPool(settings(tmp_path, llm="off", llm_api_key=OWN)) as models:
        assert not await asked(models.lease_model_for_this_process())
        assert not await asked(models.lease_model_for_api_key(ADAS))


async def test_a_key_that_would_be_seen_is_not_sent(tmp_path: Path) -> None:
    config = settings(tmp_path, llm="openai", llm_url="http://llm.example.org/v1", llm_large_model="m")
    async with LanguageModelPool(config) as models:
        with pytest.raises(InvalidInput, match="https://") as caught:
            models.lease_model_for_api_key(KEY)
    assert KEY not in str(caught.value)


async def test_one_model_serves_all_calls_of_a_key(models: LanguageModelPool) -> None:
    async with (
        models.lease_model_for_api_key(ADAS) as first,
        models.lease_model_for_api_key(ADAS) as second,
        models.lease_model_for_api_key(BOBS) as other,
    ):
        assert first is second
        assert other is not first
    async with models.lease_model_for_api_key(ADAS) as again:
        assert again is first


async def test_of_many_keys_the_last_stay_open_and_none_that_is_used_is_closed(
    models: LanguageModelPool, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "MAX_IDLE_LANGUAGE_MODELS", 2)
    async with models.lease_model_for_api_key(ADAS) as used:
        for number in range(5):
            assert await asked(models.lease_model_for_api_key(f"key-{number}"))
        async with models.lease_model_for_api_key(ADAS) as again:
            assert again is used
    async with models.lease_model_for_api_key("key-4") as kept:
        assert kept is not None
    assert len(models._open) <= 2


async def test_a_protocol_without_a_key_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with LanguageModelPool(settings(tmp_path)) as models:
        assert not await asked(models.lease_model_for_this_process())
    assert "ANTHROPIC_API_KEY" in caplog.text
    caplog.clear()
    async with LanguageModelPool(Settings(data_dir=tmp_path)):
        pass
    assert caplog.text == ""


async def test_nothing_that_can_be_printed_holds_a_key(models: LanguageModelPool) -> None:
    async with models.lease_model_for_api_key(KEY) as model:
        told = f"{models!r} {model!r} {models._open!r}"
    assert KEY not in told
