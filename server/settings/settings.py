"""Settings, from the environment (`MADELEINE_…`) and from `madeleine.toml` in the data directory; the environment wins.

What the environment says comes from `environment`, the only place that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from madeleine.memory.errors import InvalidInput
from madeleine.server.settings.context import ContextSettings
from madeleine.server.settings.environment import FILE, PREFIX, data_directory, environment, given, in_file
from madeleine.server.settings.http import HttpSettings
from madeleine.server.settings.ingest import IngestSettings
from madeleine.server.settings.language_model import LlmSettings
from madeleine.server.settings.memory_thread import ThreadSettings
from madeleine.server.settings.patrol import PatrolSettings
from madeleine.server.settings.recall import RecallSettings

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def _separated(names: object) -> object:
    return [name for part in names.split(",") if (name := part.strip())] if isinstance(names, str) else names


Names = Annotated[tuple[str, ...], BeforeValidator(_separated)]
"""In the environment separated by commas, in the file a list or the same."""


class Settings(
    HttpSettings, IngestSettings, LlmSettings, PatrolSettings, RecallSettings, ThreadSettings, ContextSettings
):
    """Every setting with its default. `MADELEINE_DATA_DIR` sets `data_dir`, and so on."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    data_dir: Path = Field(default_factory=lambda: data_directory(None))
    being: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")] = "default"
    embedding_model: Annotated[str, Field(min_length=1)] = DEFAULT_MODEL
    max_text_chars: Annotated[int, Field(ge=100, le=10_000_000)] = 32_000
    recall_threshold: Annotated[float, Field(ge=0, le=1)] = 0.35
    qdrant_url: str = ""
    """A Qdrant server instead of the embedded index."""
    idle_seconds: Annotated[float, Field(gt=0, le=10**7)] = 600.0
    """How long the host stays when its last client has gone."""
    attach: Literal["", "unix", "tcp"] = ""
    """How clients reach their host: by a Unix socket, or by loopback TCP with a token; "" for what the system has."""
    redact: bool = True
    """Take secrets (keys, tokens, passwords) out of what is stored."""
    toolsets: Names = ()
    tools: Names = ()
    exclude_tools: Names = ()
    read_only: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("data_dir")
    @classmethod
    def _from_home(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @field_validator("qdrant_url")
    @classmethod
    def _with_scheme(cls, url: str) -> str:
        # The client takes anything else for a directory, and makes it.
        if url and not url.startswith(("http://", "https://")):
            raise PydanticCustomError(
                "url_scheme",
                "it must begin with http:// or https://, as in http://localhost:6333; leave it out for the index in "
                "the data directory",
            )
        return url

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_any_case(cls, level: object) -> object:
        return level.lower() if isinstance(level, str) else level


def read_settings(
    variables: Mapping[str, str] | None = None, *, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """`variables`: the process's environment by default; `overrides` win over all. Raises `InvalidInput` that names
    what is wrong and where it stands."""
    return settings_of(given(environment() if variables is None else variables), overrides=overrides)


def settings_of(found: Mapping[str, Any], *, overrides: Mapping[str, Any] | None = None) -> Settings:
    """`found`: the environment's, by their names. Raises as `read_settings` does."""
    if unknown := sorted(set(found) - set(Settings.model_fields)):
        known = ", ".join(PREFIX + name.upper() for name in Settings.model_fields)
        raise InvalidInput(f"Unknown setting {PREFIX}{unknown[0].upper()} in the environment. Known are {known}.")
    from_environment = _validated(found, "the environment")
    file = from_environment.data_dir / FILE
    try:
        told = in_file(from_environment.data_dir)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}. Mend it or remove it.") from error
    if "data_dir" in told:
        raise InvalidInput(f"data_dir cannot be set in {file}, which lies in it: set {PREFIX}DATA_DIR.")
    if "attach" in told:
        raise InvalidInput(f"attach cannot be set in {file}, which is read too late for it: set {PREFIX}ATTACH.")
    settings = _validated(told | dict(found), str(file)) if told else from_environment
    settings = _validated(dict(settings) | dict(overrides), "the command line") if overrides else settings
    settings.check_language()
    return settings


def _validated(given: Mapping[str, Any], where: str) -> Settings:
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"The setting {name} in {where} cannot be used: {first['msg']}.") from error
