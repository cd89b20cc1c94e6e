"""Settings of the language model: which one, by whose key, and how much a patrol may spend on it."""

from __future__ import annotations

import json
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError

from madeleine.inference.language.config import LanguageConfig
from madeleine.memory.errors import InvalidInput
from madeleine.server.settings.http import is_safe_url

SMALL_MODEL = "claude-haiku-5-5"
LARGE_MODEL = "claude-sonnet-5-5"
"""Of Anthropic; with any other protocol a model has to be named."""
LONGEST_KEY = 1_000


def _one_line(key: SecretStr) -> SecretStr:
    if not is_key(key.get_secret_value()):
        # The value is not told, whatever it is.
        raise PydanticCustomError("key", "a key is one line of visible ASCII signs, without spaces")
    return key


def is_key(written: str) -> bool:
    """What can stand in a header; "" is no key, and can."""
    return len(written) <= LONGEST_KEY and all("!" <= sign <= "~" for sign in written)


def _stripped(key: object) -> object:
    return key.strip() if isinstance(key, str) else key


def _from_json(given: object) -> object:
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        raise PydanticCustomError("prices", 'write prices as JSON: {"qwen": [0, 0], "gpt-5": [1.25, 10]}') from None


Key = Annotated[SecretStr, BeforeValidator(_stripped), AfterValidator(_one_line)]
Price = Annotated[float, Field(ge=0, le=1_000_000)]


class LlmSettings(BaseModel):
    """`anthropic_api_key` and `openai_api_key` are the variables that other programs use as well, `ANTHROPIC_API_KEY`
    and `OPENAI_API_KEY`; they count where `llm_api_key` is not set."""

    llm: Literal["", "anthropic", "openai", "off"] = ""
    """"": OpenAI's protocol if there is an `llm_url`, else Anthropic if there is a key for it."""
    llm_api_key: Key = SecretStr("")
    anthropic_api_key: Key = SecretStr("")
    openai_api_key: Key = SecretStr("")
    llm_url: str = ""
    """Of an API that is not the provider's own."""
    llm_small_model: Annotated[str, Field(max_length=200)] = ""
    llm_large_model: Annotated[str, Field(max_length=200)] = ""
    llm_timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = 120.0
    llm_retries: Annotated[int, Field(ge=0, le=10)] = 2
    llm_prices: Annotated[dict[str, tuple[Price, Price]], BeforeValidator(_from_json)] = Field(default_factory=dict)
    """Beginning of a model's name → US dollars per million tokens of input and of output."""
    patrol_token_budget: Annotated[int, Field(ge=0, le=10**12)] = 200_000
    """0: no bound."""

    @field_validator("llm", mode="before")
    @classmethod
    def _llm_in_any_case(cls, name: object) -> object:
        return name.lower() if isinstance(name, str) else name

    @field_validator("llm_url")
    @classmethod
    def _bare(cls, url: str) -> str:
        # No `input` in the message: what somebody wrote before the @ is a secret.
        parts = urlsplit(url)
        if url and not (parts.scheme in ("http", "https") and parts.hostname):
            raise PydanticCustomError("llm_url", "write it whole, as in http://localhost:11434/v1")
        if parts.username is not None or parts.query or parts.fragment:
            raise PydanticCustomError(
                "llm_url", "it takes no user, query or fragment; the key is MADELEINE_LLM_API_KEY"
            )
        return url

    def language(self) -> LanguageConfig | None:
        """Which model to ask, whoever brings the key. None if it is off. Raises `InvalidInput` for settings that do not
        go together."""
        if self.llm == "off":
            return None
        of_openai = self.llm == "openai" or (self.llm == "" and bool(self.llm_url))
        if of_openai and not self.llm_large_model:
            raise InvalidInput(
                "With OpenAI's protocol the model has to be named: set MADELEINE_LLM_LARGE_MODEL (and "
                "MADELEINE_LLM_SMALL_MODEL, if a smaller one shall classify) to what the server calls it, or set "
                "MADELEINE_LLM to anthropic or off."
            )
        return LanguageConfig(
            protocol="openai" if of_openai else "anthropic",
            url=self.llm_url,
            small_model=self.llm_small_model or (self.llm_large_model if of_openai else SMALL_MODEL),
            large_model=self.llm_large_model or LARGE_MODEL,
            timeout_seconds=self.llm_timeout_seconds,
            retries=self.llm_retries,
            prices=tuple(self.llm_prices.items()),
        )

    def own_key(self) -> str:
        """ "" if there is none. An ambient key goes only to whom it was made for, or to whom it is sent by name."""
        if self.llm == "off":
            return ""
        if own := self.llm_api_key.get_secret_value():
            return own
        if self.llm == "openai":
            return self.openai_api_key.get_secret_value()
        return "" if self.llm == "" and self.llm_url else self.anthropic_api_key.get_secret_value()

    def names_a_model(self) -> bool:
        """Whether these settings say whom to ask, or not to ask anybody."""
        return self.llm == "off" or bool(self.llm_url) or bool(self.own_key())

    def chose_a_model(self) -> bool:
        """Whether somebody has said so to this program: a key that lies in the environment for another is enough for
        what is asked for, not for what is done by itself."""
        return self.llm != "off" and bool(self.llm or self.llm_url or self.llm_api_key.get_secret_value())

    def check_language(self) -> None:
        """Raises `InvalidInput` for settings that do not go together."""
        self.language()
        refuse_unsafe(self.llm_url, self.own_key())


def refuse_unsafe(url: str, key: str) -> None:
    """Raises `InvalidInput` for a key that would go over the network as it stands."""
    if url and key and not is_safe_url(url):
        raise InvalidInput(
            "A key would go to MADELEINE_LLM_URL unencrypted, where others can read it. Write https://, or an address "
            "of this machine; or set no key, if the server needs none."
        )


def of_a_client(field: str) -> bool:
    """Whether each client of a host brings this one."""
    return field in LlmSettings.model_fields and field != "patrol_token_budget"
