"""The documents agree with the repository: links, decisions, settings, commands."""

from __future__ import annotations

import re
from pathlib import Path

from madeleine.server.cli.arguments import build_command_line_parser
from madeleine.server.settings.environment import ENVIRONMENT_VARIABLE_PREFIX, TOKEN_VARIABLE, URL_VARIABLE
from madeleine.server.settings.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md", "examples/*.md", ".github/**/*.md")
    for path in ROOT.glob(pattern)
)
DECISIONS = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
INDEX, *PAGES = DECISIONS
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_SETTING = re.compile(rf"\b{ENVIRONMENT_VARIABLE_PREFIX}([A-Z0-9_]+)\b(?!…)")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    """The text without fenced and indented code blocks."""
    unfenced = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return "\n".join(line for line in unfenced.splitlines() if not line.startswith("    "))


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as Markdown renderers make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_nowhere(link: str, document: Path) -> bool:
    if re.match(r"[a-z]+:", link):
        return False
    target, _, anchor = link.partition("#")
    path = (document.parent / target).resolve() if target else document
    return not path.exists() or bool(anchor and anchor not in anchors(path))


def test_every_relative_link_leads_somewhere() -> None:
    dead = {
        (name_of(document), link)
        for document in DOCUMENTS
        for link in _LINK.findall(without_code(document.read_text(encoding="utf-8")))
        if leads_nowhere(link, document)
    }
    assert dead == set()


def test_the_decisions_are_numbered_without_gaps() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(len(DECISIONS)))


def test_the_index_lists_every_decision_with_its_exact_title() -> None:
    listed = [line for line in INDEX.read_text(encoding="utf-8").splitlines() if line.startswith("- [")]
    titles = [path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for path in PAGES]
    assert listed == [f"- [{title}]({path.name})" for title, path in zip(titles, PAGES, strict=True)]
    assert [int(title.split(".")[0]) for title in titles] == list(range(1, len(PAGES) + 1))


def test_every_document_is_in_the_overview() -> None:
    overview = set(_LINK.findall((ROOT / "docs/README.md").read_text(encoding="utf-8")))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - overview == {"README.md"}


def test_every_setting_in_a_document_exists() -> None:
    of_a_client = {variable.removeprefix(ENVIRONMENT_VARIABLE_PREFIX) for variable in (URL_VARIABLE, TOKEN_VARIABLE)}
    unknown = {
        (name_of(document), name)
        for document in DOCUMENTS
        for name in _SETTING.findall(document.read_text(encoding="utf-8"))
        if name.lower() not in Settings.model_fields and name not in of_a_client
    }
    assert unknown == set()


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    # Known by the names that their providers' programs use.
    foreign = {"anthropic_api_key", "openai_api_key"}
    assert set(Settings.model_fields) - foreign - {name.lower() for name in _SETTING.findall(text)} == set()
    assert all(name.upper() in text for name in foreign)


def test_every_make_target_in_a_document_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:`|^    )make ([a-z-]+)", text, flags=re.MULTILINE))
        assert named <= targets, name_of(document)


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `madeleine ([\w-]+)`", text, flags=re.MULTILINE))
    known = set(re.findall(r"^    ([\w-]+)(?!\S)", build_command_line_parser().format_help(), flags=re.MULTILINE)) - {
        "command"
    }
    assert listed == known


def test_every_path_in_a_document_exists() -> None:
    folders = "memory|storage|inference|patrol|tools|server|tests|docs|examples|benchmarks"
    path_in_code = re.compile(rf"`((?:{folders})/[a-z0-9_./-]+(?:\.[a-z]+|/))`")
    missing = {
        (name_of(document), path)
        for document in DOCUMENTS
        for path in path_in_code.findall(document.read_text(encoding="utf-8"))
        if not (ROOT / path).exists()
    }
    assert missing == set()
