"""Build the site: `python -m website.build FOLDER`, or `make docs`.

The Markdown files of the repository are the pages, with the files that they link to, in the folders in which they lie;
so every link that works in the repository works in the site. The navigation is the list of `docs/README.md`. A dead
link, a missing page or any other warning ends the build with an error.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException

from website.reference import pages

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "benchmarks/README.md")
REFERENCE = {"Tools": "reference/tools.md", "Command line": "reference/commands.md", "Python": "reference/library.md"}
_LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)")
_HEADING = re.compile(r"^(?:#+ )?(?P<title>For [a-z]+):?$")
_ENTRY = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<path>[^)]+)\)")


def copy_pages(target: Path) -> None:
    """The pages and, beside them, the other files of the repository that they link to."""
    documents = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    linked = {
        (document.parent / link).resolve()
        for document in documents
        for link in _LINK.findall(document.read_text(encoding="utf-8"))
    }
    for path in documents | {path for path in linked if path.is_file() and path.is_relative_to(ROOT)}:
        copy = target / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    for name, text in pages().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")


def navigation() -> list[dict[str, Any]]:
    """The list of `docs/README.md` by its headings, the reference, and the decisions."""
    parts: dict[str, list[dict[str, str]]] = {"Home": [{"Madeleine": "README.md"}, {"All pages": "docs/README.md"}]}
    title = "Home"
    for line in (ROOT / "docs/README.md").read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            title = heading["title"]
        elif (entry := _ENTRY.match(line)) and (path := _from_root(entry["path"])) != "README.md":
            parts.setdefault(title, []).append({entry["title"]: path})
    parts["Reference"] = [{name: path} for name, path in REFERENCE.items()]
    decisions = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
    parts["Decisions"] = [{path.stem: path.relative_to(ROOT).as_posix()} for path in decisions]
    return [{name: entries} for name, entries in parts.items()]


def _from_root(link: str) -> str:
    return (ROOT / "docs" / link).resolve().relative_to(ROOT).as_posix()


def build_site(target: Path) -> None:
    """Raises `MkDocsException` for any warning."""
    with tempfile.TemporaryDirectory(prefix="madeleine-") as name:
        source = Path(name)
        copy_pages(source)
        config = load_config(
            str(Path(__file__).with_name("mkdocs.yml")),
            docs_dir=str(source),
            site_dir=str(target),
            nav=navigation(),
            strict=True,
        )
        build(config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the site is written; it is replaced")
    try:
        build_site(parser.parse_args().folder.resolve())
    except MkDocsException as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
