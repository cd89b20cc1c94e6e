"""Which language model, by whose key; and that no key is ever told."""

from __future__ import annotations

from pathlib import Path

import pytest

from madeleine.inference.language.config import LanguageModelConfig
from madeleine.inference.language.prices import model_call_cost_in_usd
from madeleine.memory.errors import InvalidInput
from madeleine.server.settings.environment import SETTINGS_FILE, setting_values_from_variables
from madeleine.server.settings.language_model import DEFAULT_LARGE_ANTHROPIC_MODEL, DEFAULT_SMALL_ANTHROPIC_MODEL
from madeleine.server.settings.settings import Settings, read_settings
from tests.language.stub import KEY
from tests.rows import for_each_row

LOCAL = "http://localhost:11434/v1"
OTHER = "sk-other-" + "3Kz" * 8


def settings(tmp_path: Path, **variables: str) -> Settings:
    """Names in capitals are variables as they stand, all others settings."""
    named = {name if name.isupper() else f"MADELEINE_{name.upper()}": value for name, value in variables.items()}
    return read_settings({"MADELEINE_DATA_DIR": str(tmp_path)} | named)


def language(found: Settings) -> LanguageModelConfig:
    config = found.llm_config()
    assert config is not None
    return config


def test_without_a_setting_a_client_that_brings_a_key_asks_anthropic(tmp_path: Path) -> None:
    parsed = settings(tmp_path)
    config = language(parsed)
    assert (config.protocol, config.url, config.small_model, config.large_model) == (
        "anthropic",
        "",
        DEFAULT_SMALL_ANTHROPIC_MODEL,
        DEFAULT_LARGE_ANTHROPIC_MODEL,
    )
    assert (parsed.resolved_llm_key(), parsed.is_llm_chosen_or_turned_off(), parsed.patrol_token_budget) == (
        "",
        False,
        200_000,
    )


def test_the_default_models_have_a_price_and_are_known_to_the_sdk() -> None:
    """An alias that its provider retires is told by the SDK."""
    import anthropic.resources.messages.messages as sdk
    from anthropic.types import model

    names = str(model.Model)
    for name in (DEFAULT_SMALL_ANTHROPIC_MODEL, DEFAULT_LARGE_ANTHROPIC_MODEL):
        assert model_call_cost_in_usd(name, 1, 1)
        assert f"'{name}'" in names
        assert name not in sdk.DEPRECATED_MODELS


@pytest.mark.parametrize(
    ("variables", "protocol", "key"),
    [
        ({"ANTHROPIC_API_KEY": KEY}, "anthropic", KEY),
        ({"llm_api_key": KEY}, "anthropic", KEY),
        ({"llm_api_key": f" {KEY}\n"}, "anthropic", KEY),
        ({"llm_api_key": KEY, "ANTHROPIC_API_KEY": OTHER}, "anthropic", KEY),
        ({"OPENAI_API_KEY": KEY}, "anthropic", ""),
        ({"llm": "anthropic", "OPENAI_API_KEY": KEY}, "anthropic", ""),
        ({"llm": "openai", "llm_large_model": "m", "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": OTHER}, "openai", KEY),
        ({"llm": "OpenAI", "llm_large_model": "m", "llm_url": LOCAL}, "openai", ""),
        ({"llm_url": LOCAL, "llm_large_model": "m"}, "openai", ""),
        ({"llm_url": LOCAL, "llm_large_model": "m", "llm_api_key": KEY}, "openai", KEY),
        # A key goes to nobody for whom it was not meant.
        ({"llm_url": LOCAL, "llm_large_model": "m", "ANTHROPIC_API_KEY": OTHER, "OPENAI_API_KEY": OTHER}, "openai", ""),
        ({"llm": "anthropic", "llm_url": "http://127.0.0.1:1", "ANTHROPIC_API_KEY": KEY}, "anthropic", KEY),
    ],
)
def test_who_is_asked_and_by_which_key(tmp_path: Path, variables: dict[str, str], protocol: str, key: str) -> None:
    parsed = settings(tmp_path, **variables)
    assert (language(parsed).protocol, parsed.resolved_llm_key()) == (protocol, key)


@pytest.mark.parametrize("more", [{}, {"llm_api_key": KEY}, {"ANTHROPIC_API_KEY": KEY}, {"llm_url": LOCAL}])
def test_off_switches_all_off(tmp_path: Path, more: dict[str, str]) -> None:
    parsed = settings(tmp_path, llm="off", **more)
    assert (parsed.llm_config(), parsed.resolved_llm_key(), parsed.is_llm_chosen_or_turned_off()) == (None, "", True)


def test_an_ambient_key_counts_also_where_the_file_says_who_is_asked(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text('llm = "openai"\nllm_large_model = "m"\n', encoding="utf-8")
    assert settings(tmp_path, OPENAI_API_KEY=KEY).resolved_llm_key() == KEY


def test_the_file_may_complete_what_the_environment_begins(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text('llm_large_model = "m"\n[llm_prices]\nm = [1, 2]\n', encoding="utf-8")
    config = language(settings(tmp_path, llm="openai"))
    assert (config.small_model, config.large_model, config.prices) == ("m", "m", (("m", (1.0, 2.0)),))


def test_prices_are_json_in_the_environment(tmp_path: Path) -> None:
    assert language(settings(tmp_path, llm_prices='{"qwen": [0, 0.5]}')).prices == (("qwen", (0.0, 0.5)),)


@pytest.mark.parametrize(
    ("variables", "word"),
    [
        ({"llm": "openai"}, "MADELEINE_LLM_LARGE_MODEL"),
        ({"llm_url": LOCAL}, "MADELEINE_LLM_LARGE_MODEL"),
        ({"llm_url": LOCAL, "llm_small_model": "m"}, "MADELEINE_LLM_LARGE_MODEL"),
        ({"llm_url": "http://llm.example.org/v1", "llm_large_model": "m", "llm_api_key": KEY}, "https://"),
        ({"llm": "anthropic", "llm_url": "http://10.0.0.1", "ANTHROPIC_API_KEY": KEY}, "https://"),
        ({"llm_url": "localhost:11434"}, "http://localhost:11434/v1"),
        ({"llm_url": f"http://user:{KEY}@localhost/v1"}, "MADELEINE_LLM_API_KEY"),
        ({"llm_url": f"http://localhost/v1?key={KEY}"}, "MADELEINE_LLM_API_KEY"),
        ({"llm": "gemini"}, "'anthropic'"),
        ({"llm_prices": "cheap"}, '{"qwen": [0, 0]'),
        ({"llm_prices": '{"qwen": [-1, 0]}'}, "llm_prices"),
        ({"llm_api_key": f"{KEY} x"}, "visible ASCII"),
        ({"llm_api_key": f"{KEY}\n{KEY}"}, "visible ASCII"),
        ({"ANTHROPIC_API_KEY": "ключ"}, "visible ASCII"),
        ({"llm_retries": "many"}, "llm_retries"),
        ({"llm_timeout_seconds": "0"}, "llm_timeout_seconds"),
        ({"patrol_token_budget": "-1"}, "patrol_token_budget"),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_to_do_and_without_the_key(
    tmp_path: Path, variables: dict[str, str], word: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        settings(tmp_path, **variables)
    assert word in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_local_model_on_another_machine_needs_no_encryption_without_a_key(tmp_path: Path) -> None:
    url = "http://192.168.1.5:11434/v1"
    assert language(settings(tmp_path, llm_url=url, llm_large_model="m")).url == url


def test_nothing_that_can_be_printed_holds_a_key(tmp_path: Path) -> None:
    parsed = settings(tmp_path, llm_api_key=KEY, ANTHROPIC_API_KEY=OTHER)
    told = f"{parsed} {parsed!r} {parsed.model_dump()} {parsed.model_dump_json()} {parsed.llm_config()!r}"
    assert KEY not in told
    assert OTHER not in told


@for_each_row(
    ("llm", "names"),
    [
        ("", {"anthropic_api_key", "openai_api_key"}),
        ("Anthropic", {"anthropic_api_key"}),
        ("openai", {"openai_api_key"}),
        ("off", set()),
    ],
)
def test_a_key_that_nobody_needs_stays_in_the_environment(llm: str, names: set[str]) -> None:
    found = setting_values_from_variables({"MADELEINE_LLM": llm, "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": OTHER})
    assert set(found) - {"llm"} == names
