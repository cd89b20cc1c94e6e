"""What the environment says, before anybody judges it: for `settings`, and for the forwarder, which starts too fast to
import those. Standard library, but for `platformdirs` where no data directory is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PREFIX = "MADELEINE_"


def environment() -> dict[str, str]:
    return dict(os.environ)


def given(variables: Mapping[str, str]) -> dict[str, str]:
    """Settings by their names, as `being` for `MADELEINE_BEING`; an empty variable is none."""
    return {
        name.removeprefix(PREFIX).lower(): value
        for name, value in variables.items()
        if name.startswith(PREFIX) and value
    }


def data_directory(named: str | None) -> Path:
    """Absolute; the platform's directory for a user's data if none is named."""
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_data_path("madeleine", appauthor=False)
