"""`madeleine help` and `madeleine completion`: the pages of the documentation, and the completion for a shell. Neither
reads a setting, so that both work whatever is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from madeleine.memory.errors import InvalidInput
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server.cli.arguments import build_command_line_parser
from madeleine.server.cli.output import make_console
from madeleine.server.suggestions import did_you_mean_text

UNLISTED_HELP_PAGE_NAME = "README"


def help_command(arguments: argparse.Namespace) -> None:
    """Rendered on a terminal, else as it is. Raises `InvalidInput` for a page that does not exist."""
    pages = documentation_page_paths_by_name()
    topic = (arguments.topic or "").lower().removesuffix(".md")
    if not topic:
        print(build_command_line_parser().format_help())
        others = sorted(set(pages) - {UNLISTED_HELP_PAGE_NAME})
        print(f"pages (madeleine help PAGE):\n  {', '.join(others)}")
        return
    if topic not in pages:
        meant = did_you_mean_text(topic, set(pages) - {UNLISTED_HELP_PAGE_NAME})
        raise InvalidInput(f"There is no page {terminal_safe_line(topic)!r}.{meant}")
    text = pages[topic].read_text(encoding="utf-8")
    out = make_console()
    if not out.is_terminal:
        print(text)
        return
    from rich.markdown import Markdown

    with out.pager(styles=True):
        out.print(Markdown(text))


def documentation_page_paths_by_name() -> Mapping[str, Path]:
    """Name → file: of the installed package, or of the checkout."""
    package = Path(__file__).parents[3]
    folder = next((one for one in (package / "docs", package.parent / "docs") if one.is_dir()), package)
    return {path.stem: path for path in sorted(folder.glob("*.md"))}


def completion_command(arguments: argparse.Namespace) -> None:
    import shtab

    print(shtab.complete(build_command_line_parser(), shell=arguments.shell))
