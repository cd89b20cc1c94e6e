"""Rules of the repository that no other tool checks. import-linter checks the imports (`make imports`)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("memory", "storage", "inference", "patrol", "tools", "server")
READS_ENVIRONMENT = {"environ", "environb", "getenv", "getenvb"}
MAX_LINES, MAX_FILES = 400, 20
SOURCES = [path.relative_to(ROOT).as_posix() for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
CODE = SOURCES + [
    path.relative_to(ROOT).as_posix()
    for folder in ("madeleine", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
]


def environment_reads(source: str) -> Iterator[int]:
    """The lines that reach for `os.environ`, `os.getenv` or their likes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in READS_ENVIRONMENT:
                yield node.lineno
            case ast.ImportFrom(module="os", names=names) if any(alias.name in READS_ENVIRONMENT for alias in names):
                yield node.lineno


def test_the_environment_is_read_in_one_place() -> None:
    readers = {
        f"{path}:{line}" for path in SOURCES for line in environment_reads((ROOT / path).read_text(encoding="utf-8"))
    }
    assert {reader for reader in readers if not reader.startswith("server/settings/environment.py:")} == set()


def test_reading_the_environment_is_noticed_in_every_form() -> None:
    source = "import os\nfrom os import getenv\nos.environ['A']\nos.getenv('B')\n# os.environ\n"
    assert sorted(environment_reads(source)) == [2, 3, 4]


def test_no_module_is_longer_than_400_lines() -> None:
    lengths = {path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in CODE}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_folder_of_code_holds_more_than_20_files() -> None:
    folders = Counter(path.rpartition("/")[0] for path in CODE)
    del folders["storage/sql/migrations/versions"]  # a file for each revision, which only grow in number
    assert {folder: files for folder, files in folders.items() if files > MAX_FILES} == {}


def test_the_package_links_to_every_folder_of_code_and_to_the_plugin() -> None:
    links = {path.name: path.readlink().as_posix() for path in (ROOT / "madeleine").iterdir() if path.is_symlink()}
    assert links == {folder: f"../{folder}" for folder in (*PACKAGES, "plugin")}
