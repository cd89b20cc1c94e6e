"""The grammar of `madeleine graph` and `madeleine costs`. Imported at every start: standard library and little else."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from madeleine.server.cli.arguments import Subparsers
    from madeleine.server.cli.command_line_parser import CommandLineParser


def add_graph_command(commands: Subparsers, json: CommandLineParser) -> None:
    text = "show who and what memories name, how that is related, and since when"
    add = commands.add_parser("graph", parents=[json], help=text).add_argument
    add("entity", nargs="?", help="a person, a thing, a place, a theme or a day (default: list the commonest)")
    add("--hops", type=int, choices=(1, 2), default=1, help="2: also what its neighbours are related to")
    add("--as-of", metavar="DATE", help="what was true then")
    add("--limit", metavar="N", type=_parse_list_limit, default=10, help="of each list, at most 50 (default 10)")


def add_costs_command(commands: Subparsers, json: CommandLineParser) -> None:
    text = "show what language models cost: calls, tokens and price, by day, run, model, purpose or being"
    add = commands.add_parser("costs", parents=[json], help=text).add_argument
    groups = ("day", "run", "model", "purpose", "being")
    add("--by", choices=groups, default="day", help="a line for each of these (default: day)")
    add("--being", metavar="B", help="only this being's (default: all)")
    add("--since", metavar="T", help="ISO date or time")
    add("--until", metavar="T", help="ISO date or time, inclusive")


def _parse_list_limit(text: str) -> int:
    limit = int(text)
    if not 1 <= limit <= 50:
        raise argparse.ArgumentTypeError("must be from 1 to 50")
    return limit
