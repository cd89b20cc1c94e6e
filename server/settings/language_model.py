"""Settings of the language model: which model, and whose key."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr

from madeleine.inference.language.config import DEFAULT_LLM_RETRIES, DEFAULT_LLM_TIMEOUT_SECONDS, LanguageModelConfig
from madeleine.memory.errors import InvalidInput
from madeleine.server.addresses import is_http_url, is_https_or_loopback_http_url
from madeleine.server.settings.fields import (
    LowercaseValidator,
    text_parsing_validator,
    valid_if_set_validator,
    validator_parsing_json_text,
)

DEFAULT_SMALL_ANTHROPIC_MODEL = "claude-haiku-5-5"
DEFAULT_LARGE_ANTHROPIC_MODEL = "claude-sonnet-5-5"
"""Of Anthropic; with any other protocol a model has to be named."""
MAX_API_KEY_CHARS = 1_000


def is_well_formed_api_key(key: str) -> bool:
    """Whether it can stand in a header; "" (no key) can."""
    return len(key) <= MAX_API_KEY_CHARS and all("!" <= character <= "~" for character in key)


def _is_well_formed_secret_api_key(key: SecretStr) -> bool:
    return is_well_formed_api_key(key.get_secret_value())


def _has_no_credentials_or_query(url: str) -> bool:
    parts = urlsplit(url)
    return parts.username is None and not parts.query and not parts.fragment


ApiKey = Annotated[
    SecretStr,
    text_parsing_validator(str.strip),
    valid_if_set_validator(
        _is_well_formed_secret_api_key, "a key is one line of visible ASCII characters, without spaces"
    ),
]
UsdPerMillionTokens = Annotated[float, Field(ge=0, le=1_000_000)]


class LlmSettings(BaseModel):
    """`anthropic_api_key` and `openai_api_key` are the variables that other programs use as well, `ANTHROPIC_API_KEY`
    and `OPENAI_API_KEY`; they count where `llm_api_key` is not set."""

    llm: Annotated[Literal["", "anthropic", "openai", "off"], LowercaseValidator] = ""
    """"": OpenAI's protocol if there is an `llm_url`, else Anthropic if there is a key for it."""
    llm_api_key: ApiKey = SecretStr("")
    anthropic_api_key: ApiKey = SecretStr("")
    openai_api_key: ApiKey = SecretStr("")
    llm_url: Annotated[
        str,
        valid_if_set_validator(is_http_url, "write it whole, as in http://localhost:11434/v1"),
        valid_if_set_validator(
            _has_no_credentials_or_query, "it takes no user, query or fragment; the key is MADELEINE_LLM_API_KEY"
        ),
    ] = ""
    """Of an API that is not the provider's own."""
    llm_small_model: Annotated[str, Field(max_length=200)] = ""
    llm_large_model: Annotated[str, Field(max_length=200)] = ""
    llm_timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = DEFAULT_LLM_TIMEOUT_SECONDS
    llm_retries: Annotated[int, Field(ge=0, le=10)] = DEFAULT_LLM_RETRIES
    llm_prices: Annotated[
        dict[str, tuple[UsdPerMillionTokens, UsdPerMillionTokens]],
        validator_parsing_json_text('{"qwen": [0, 0], "gpt-5": [1.25, 10]}'),
    ] = Field(default_factory=dict)
    """Beginning of a model's name → US dollars per million tokens of input and of output."""

    def llm_config(self) -> LanguageModelConfig | None:
        """The model to ask, whoever brings the key. None if it is off. Raises `InvalidInput` for settings that do not
        go together."""
        if self.llm == "off":
            return None
        uses_openai = self.llm == "openai" or (self.llm == "" and bool(self.llm_url))
        if uses_openai and not self.llm_large_model:
            raise InvalidInput(
                "OpenAI's protocol needs a model name: set MADELEINE_LLM_LARGE_MODEL (and MADELEINE_LLM_SMALL_MODEL, "
                "for a smaller one that classifies) to the server's name for it, or set MADELEINE_LLM to anthropic or "
                "off."
            )
        return LanguageModelConfig(
            protocol="openai" if uses_openai else "anthropic",
            url=self.llm_url,
            small_model=self.llm_small_model
            or (self.llm_large_model if uses_openai else DEFAULT_SMALL_ANTHROPIC_MODEL),
            large_model=self.llm_large_model or DEFAULT_LARGE_ANTHROPIC_MODEL,
            timeout_seconds=self.llm_timeout_seconds,
            retries=self.llm_retries,
            prices=tuple(self.llm_prices.items()),
        )

    def resolved_llm_key(self) -> str:
        """The key to use, "" if there is none. An ambient key goes only to its own provider, or to a URL for which
        the provider was named."""
        if self.llm == "off":
            return ""
        if key := self.llm_api_key.get_secret_value():
            return key
        if self.llm == "openai":
            return self.openai_api_key.get_secret_value()
        return "" if self.llm == "" and self.llm_url else self.anthropic_api_key.get_secret_value()

    def is_llm_chosen_or_turned_off(self) -> bool:
        """Whether these settings choose a model, or none."""
        return self.llm == "off" or bool(self.llm_url) or bool(self.resolved_llm_key())

    def has_chosen_llm(self) -> bool:
        """Whether a model was chosen for this program. An ambient key, made for other programs, serves calls but no
        background work."""
        return self.llm != "off" and bool(self.llm or self.llm_url or self.llm_api_key.get_secret_value())

    def require_consistent_llm_settings(self) -> None:
        """Raises `InvalidInput` for settings that do not go together."""
        self.llm_config()
        require_encryption_for_api_key(self.llm_url, self.resolved_llm_key())


def require_encryption_for_api_key(url: str, key: str) -> None:
    """Raises `InvalidInput` for a key that would cross the network unencrypted."""
    if url and key and not is_https_or_loopback_http_url(url):
        raise InvalidInput(
            "The key would go to MADELEINE_LLM_URL unencrypted, where others can read it. Use an https:// URL or an "
            "address of this machine; or set no key, if the server needs none."
        )
