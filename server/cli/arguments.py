"""The words that the command `madeleine` knows. Imported at every start: standard library and little else."""

from __future__ import annotations

import argparse
from typing import Any

from madeleine.memory.scope import ROLES
from madeleine.server import __version__
from madeleine.server.cli.chat_arguments import add_chat_commands


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="madeleine",
        description="Long-term memory for AI agents, an MCP server. Without a command: serve MCP on stdin and stdout, "
        "through the one process that owns the memory; it is started where there is none.",
    )
    found.add_argument("--version", action="version", version=f"madeleine {__version__}")
    found.add_argument("--in-process", action="store_true", help="serve in this process, as in a container")
    commands = found.add_subparsers(dest="command", metavar="command")
    serving = commands.add_parser("serve", help="serve MCP, on standard input and output (the default) or over HTTP")
    serving.add_argument("--http", action="store_true", help="serve streamable HTTP at /mcp instead")
    serving.add_argument("--host", help="with --http: the address to listen on (default 127.0.0.1)")
    serving.add_argument("--port", type=int, help="with --http: the port (default 8765; 0: any that is free)")
    serving.add_argument(
        "--sse", action="store_true", help="with --http: also the older transport, at /sse (deprecated)"
    )
    for one in (found, serving):
        _add_choices(one)
    # As the one above; not to be set back where it is not given here.
    serving.add_argument("--in-process", action="store_true", default=argparse.SUPPRESS, help="see madeleine --help")
    status = commands.add_parser("status", help="tell which process owns the memory, and who its clients are")
    status.add_argument("--json", action="store_true", help="as JSON")
    commands.add_parser("stop", help="end that process, when it has finished what it has begun")
    commands.add_parser("reindex", help="build the index anew from the ledger")
    note = commands.add_parser("note", help="put scene notes into the inbox, for the next patrol")
    note.add_argument("file", help="a file with one scene as JSON a line; - for standard input")
    poured = commands.add_parser("ingest", help="pour files into memory: texts, Markdown, conversations as JSON lines")
    poured.add_argument("files", metavar="file", nargs="+", help="- for standard input")
    poured.add_argument("--session", metavar="S", help="the session that they belong to")
    poured.add_argument("--category", metavar="C", help="of all that is in them; else told by what each part says")
    poured.add_argument("--json", action="store_true", help="what became of them as JSON")
    shown = commands.add_parser("audit", help="show who did what to which memories, and when")
    shown.add_argument("--being", metavar="B", help="only this being's memories; all if left out")
    shown.add_argument("--since", metavar="T", help="ISO date or time")
    shown.add_argument("--until", metavar="T", help="ISO date or time, inclusive")
    shown.add_argument("--event", metavar="E", help="only this: store, recall, patrol and so on")
    shown.add_argument("--limit", metavar="N", type=int, default=100, help="the last N entries (default 100)")
    shown.add_argument("--json", action="store_true", help="one JSON object a line, with all ids")
    _add_patrol(commands)
    _add_token(commands)
    add_chat_commands(commands)
    _add_profile(commands)
    commands.add_parser(
        "config", help="print the configuration that an MCP client needs, with this installation's path"
    )
    return found


def _add_choices(found: argparse.ArgumentParser) -> None:
    # Without defaults: those of a subcommand would overwrite what was said before it.
    given: dict[str, Any] = {"default": argparse.SUPPRESS, "metavar": "names"}
    found.add_argument(
        "--toolsets",
        help="only these families of tools, separated by commas (memory, patrol, conversation, context; or all)",
        **given,
    )
    found.add_argument("--tools", help="only these tools, or these beside those of --toolsets", **given)
    found.add_argument("--exclude-tools", help="not these tools", **given)
    found.add_argument(
        "--read-only", action="store_true", default=argparse.SUPPRESS, help="only tools that change nothing"
    )


def _add_patrol(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    patrol = commands.add_parser("patrol", help="tidy memory now, show or undo what patrols did, or watch them")
    patrol.add_argument(
        "--steps",
        metavar="names",
        help="only these, with commas between: assign, age, flag, consolidate, revive, split, merge, compress, diary",
    )
    patrol.add_argument("--dry-run", action="store_true", help="only report what would change")
    patrol.add_argument("--watch", action="store_true", help="show patrols as they come, whoever asked; until Ctrl-C")
    patrol.add_argument("--json", action="store_true", help="as JSON; with --watch one object a line")
    verbs = patrol.add_subparsers(dest="verb", metavar="verb")
    runs = verbs.add_parser("runs", help="list patrols, the latest first: when, how they ended, what they changed")
    runs.add_argument("--limit", metavar="N", type=int, default=20, help="the last N (default 20)")
    undo = verbs.add_parser("undo", help="put back what a patrol changed")
    undo.add_argument("run", metavar="run", help="as `madeleine patrol runs` shows it")
    for verb in (runs, undo):
        # Not to be set back where it is not given here.
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON")


def _add_token(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    token = commands.add_parser("token", help="make, list and revoke bearer tokens for HTTP")
    verbs = token.add_subparsers(dest="verb", metavar="verb", required=True)
    create = verbs.add_parser("create", help="make a token and print it, once")
    create.add_argument("--being", help="whose memory it opens (default: the setting)")
    create.add_argument("--role", choices=ROLES, default="agent", help="who will speak for the being (default: agent)")
    create.add_argument("--read-only", action="store_true", help="only tools that change nothing")
    create.add_argument("--name", default="", help="what it is for, to tell it from others in the list")
    create.add_argument("--expires", help="a date (2027-01-31), a moment with its time, or a number of days (90d)")
    create.add_argument("--resource", help="the server's URL, as clients write it (default: the setting public_url)")
    verbs.add_parser("list", help="show all tokens, without their secrets")
    revoke = verbs.add_parser("revoke", help="refuse a token from now on")
    revoke.add_argument("id", help="as `madeleine token list` shows it")


def _add_profile(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    profile = commands.add_parser("profile", help="show and change who the being is: soul, rules, preferences, notes")
    verbs = profile.add_subparsers(dest="verb", metavar="verb", required=True)
    kinds = "soul, partner_rules, preferences, relationships, tools, map, knowledge or notes"
    show = verbs.add_parser("show", help="list entries, all or of one kind")
    show.add_argument("kind", nargs="?", help=kinds)
    show.add_argument("name", nargs="?", help="only this entry")
    show.add_argument("--json", action="store_true", help="as JSON")
    write = verbs.add_parser("set", help="write an entry, in place of the one of that name; or leave a note")
    write.add_argument("kind", help=kinds)
    write.add_argument("name", help="of the entry; of a note its type, as todo")
    write.add_argument("value", nargs="?", help="what it says")
    write.add_argument("--file", metavar="F", help="take what it says from a file; - for standard input")
    for verb, what in (("enable", "switch a partner rule or a preference on"), ("disable", "switch it off")):
        one = verbs.add_parser(verb, help=what)
        one.add_argument("kind", help="partner_rules or preferences")
        one.add_argument("name", help="of the entry")
    remove = verbs.add_parser("remove", help="take an entry away; a preference with its memory, which is forgotten")
    remove.add_argument("kind", help=kinds)
    remove.add_argument("name", help="of the entry; of a note its id")
    done = verbs.add_parser("done", help="mark a note as done")
    done.add_argument("name", help="the note's id, as show has it")
