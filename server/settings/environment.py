"""The environment before validation: for `server.settings.settings`, and for programs that start too fast to import it.

Standard library only, except `platformdirs` where no data directory is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ENVIRONMENT_VARIABLE_PREFIX = "MADELEINE_"
PLUGIN_OPTION_VARIABLE_PREFIX = "CLAUDE_PLUGIN_OPTION_"
"""Of what a person has configured for the plugin: Claude Code gives it to hooks under these names, and `plugin.json` to
the server."""
URL_VARIABLE, TOKEN_VARIABLE = "MADELEINE_URL", "MADELEINE_TOKEN"
"""Of a server over HTTP that clients and hooks are to use instead of this machine's memory. No settings of a server."""
SETTINGS_FILE = "madeleine.toml"
"""In the data directory; the environment wins."""
API_KEY_VARIABLE_BY_PROVIDER = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""Provider → the variable that all programs look into for its key."""
DEFAULT_MAX_TEXT_CHARS = 32_000
"""Default of the setting `max_text_chars`."""


def read_environment_variables() -> dict[str, str]:
    """The environment. An option of the plugin, as `CLAUDE_PLUGIN_OPTION_MADELEINE_BEING`, wins over the variable that
    it is named for, unless it is empty."""
    chosen = {
        name.removeprefix(PLUGIN_OPTION_VARIABLE_PREFIX): value
        for name, value in os.environ.items()
        if name.startswith(f"{PLUGIN_OPTION_VARIABLE_PREFIX}{ENVIRONMENT_VARIABLE_PREFIX}") and value
    }
    return dict(os.environ) | chosen


def setting_values_from_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Values by the settings' names, as `being` for `MADELEINE_BEING`; an empty variable counts as not set. An ambient
    key is included only if `MADELEINE_LLM` is not another provider."""
    named = {
        name.removeprefix(ENVIRONMENT_VARIABLE_PREFIX).lower(): value
        for name, value in variables.items()
        if name.startswith(ENVIRONMENT_VARIABLE_PREFIX) and value and name not in (URL_VARIABLE, TOKEN_VARIABLE)
    }
    provider_asked = named.get("llm", "").lower()
    ambient = {
        name.lower(): variables[name]
        for provider, name in API_KEY_VARIABLE_BY_PROVIDER.items()
        if provider_asked in ("", provider) and variables.get(name)
    }
    return ambient | named


AUTOMATIC_PROJECT_VALUE = "auto"
"""The project is the one that the client works in: the directory that it was started in, or its first root."""


def project_of_directory(directory: Path) -> str:
    """The name of the nearest directory above that is a repository, else of the directory itself; "" for a directory
    that is nobody's project: the home, or one above it."""
    for place in (directory, *directory.parents):
        if (place / ".git").exists():
            return place.name
    home = Path.home()
    return "" if directory == home or directory in home.parents else directory.name


def settings_with_automatic_project_resolved(
    settings: Mapping[str, str], directory: Path | None = None
) -> dict[str, str]:
    """The settings that a client brings, with its project in place of `auto` where its directory tells it."""
    project = settings.get("project", "")
    if project == AUTOMATIC_PROJECT_VALUE:
        project = project_of_directory(directory or Path.cwd()) or project
    return {**settings, **({"project": project} if project else {})}


def resolve_data_directory(named: str | None = None) -> Path:
    """Absolute; the platform's directory for a user's data if none is named."""
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_data_path("madeleine", appauthor=False)


def read_settings_file(data_dir: Path) -> dict[str, Any]:
    """The settings in `madeleine.toml`, empty where there is none. Raises `OSError`, `ValueError` if it cannot be
    read."""
    try:
        text = (data_dir / SETTINGS_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    import tomllib

    return tomllib.loads(text)
