"""The documentation builds as a site, strictly: no dead link, no page that is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mkdocs.exceptions import MkDocsException

from website import build, pictures


def test_the_pictures_are_those_that_the_rules_draw() -> None:
    """`make pictures` draws them."""
    drawn = {name: draw() for name, draw in pictures.PICTURES.items()}
    assert {name: (pictures.FOLDER / name).read_text(encoding="utf-8") for name in drawn} == drawn


@pytest.mark.slow
def test_the_site_builds_and_fetches_nothing_from_elsewhere(tmp_path: Path) -> None:
    build.build_site(tmp_path)
    for page in ("index", "docs/tutorial", "reference/tools", "reference/commands", "reference/library"):
        text = (tmp_path / f"{page}.html").read_text(encoding="utf-8")
        fetched = re.findall(
            r"""<(?:script|img|iframe)[^>]+src=["']?(https?:|//)|<link[^>]+stylesheet[^>]+https?:""", text
        )
        assert fetched == []
    assert "recall_memory" in (tmp_path / "reference/tools.html").read_text(encoding="utf-8")
    assert "madeleine.client.connect" in (tmp_path / "reference/library.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_dead_link_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "pages", lambda: {"reference/tools.md": "[dead](nowhere.md)"})
    with pytest.raises(MkDocsException):
        build.build_site(tmp_path)
