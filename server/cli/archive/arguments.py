"""The grammar of `madeleine retention` and `madeleine archive`."""

from __future__ import annotations

import argparse
from typing import Any


def add_archive_commands(commands: Any, json: argparse.ArgumentParser) -> None:
    """`commands`: those of the grammar; `json`: the option that all of them have."""
    text = "archive the memories whose time is over, by MADELEINE_RETENTION; a patrol does it, too"
    retention = commands.add_parser("retention", parents=[json], help=text)
    retention.add_argument("--dry-run", action="store_true", help="show the rules in force, what would go, and why")
    text = "find what retention has archived, and bring it back"
    verbs = commands.add_parser("archive", help=text).add_subparsers(dest="verb", metavar="verb", required=True)
    add = verbs.add_parser("list", parents=[json], help="list it, the latest first").add_argument
    add("query", nargs="?", help="only what has any of these words")
    add("--groups", action="store_true", help="what went together, and what it was about")
    add("--limit", metavar="N", type=int, default=20, help="default: 20")
    add("--position", metavar="N", type=int, default=0, help="entries to skip")
    restore = verbs.add_parser("restore", parents=[json], help="bring memories back exactly as they were")
    restore.add_argument("id", nargs="+", help="such as m12, as `madeleine archive list` shows it")
    add = verbs.add_parser(
        "end", parents=[json], help="archive what was kept for a session or project only"
    ).add_argument
    add("--session", metavar="ID", help="the session that has ended")
    add("--project", metavar="NAME", help="the project that has ended")
