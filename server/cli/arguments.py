"""The grammar of the command `madeleine`. Imported at every start: standard library and little else."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from madeleine.memory.model import ROLES
from madeleine.server import __version__

KINDS = "soul, partner_rules, preferences, relationships, tools, map, knowledge or notes"
HOOK_SECONDS = 8.0
"""Default time limit of `madeleine observe`."""

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """`command` is always set. Raises `SystemExit`."""
    grammar = parser()
    arguments = grammar.parse_args(argv)
    arguments.command = arguments.command or "serve"
    if not arguments.http and (arguments.sse or hasattr(arguments, "http_host") or hasattr(arguments, "http_port")):
        grammar.error("--host, --port and --sse need --http.")
    return arguments


def parser() -> argparse.ArgumentParser:
    grammar = argparse.ArgumentParser(
        prog="madeleine",
        description="Long-term memory for AI agents, an MCP server. Without a command: serve MCP on stdin and stdout, "
        "through the one process that owns the memory; it is started if there is none.",
    )
    grammar.set_defaults(http=False, sse=False)
    grammar.add_argument("--version", action="version", version=f"madeleine {__version__}")
    grammar.add_argument("--in-process", action="store_true", help="serve in this process, as in a container")
    _add_tool_selection(grammar)
    commands = grammar.add_subparsers(dest="command", metavar="command")
    _add_serve(commands)
    status = commands.add_parser("status", help="show the process that owns the memory, and its clients")
    status.add_argument("--json", action="store_true", help="as JSON")
    commands.add_parser("stop", help="end that process, after its calls in progress")
    commands.add_parser("reindex", help="rebuild the index from the ledger")
    note = commands.add_parser("note", help="put scene notes into the inbox, for the next patrol")
    note.add_argument("file", help="a file with one scene as JSON per line; - for standard input")
    _add_ingest(commands)
    _add_audit(commands)
    _add_patrol(commands)
    _add_token(commands)
    _add_observe(commands)
    _add_import(commands)
    _add_profile(commands)
    commands.add_parser(
        "config", help="print the configuration that an MCP client needs, with this installation's path"
    )
    return grammar


def _add_tool_selection(command: argparse.ArgumentParser) -> None:
    # Without defaults: those of a subcommand would overwrite the options before it.
    helps = {
        "--toolsets": "only these families of tools, separated by commas (memory, patrol, conversation, context; or "
        "all)",
        "--tools": "only these tools, or these beside those of --toolsets",
        "--exclude-tools": "not these tools",
    }
    for option, text in helps.items():
        command.add_argument(option, metavar="names", default=argparse.SUPPRESS, help=text)
    command.add_argument(
        "--read-only", action="store_true", default=argparse.SUPPRESS, help="only tools that change nothing"
    )


def _add_serve(commands: _Commands) -> None:
    serve = commands.add_parser("serve", help="serve MCP, on standard input and output (the default) or over HTTP")
    serve.add_argument("--http", action="store_true", help="serve streamable HTTP at /mcp instead")
    for option, text in (("host", "address to listen on (default 127.0.0.1)"), ("port", "port (default 8765; 0: any)")):
        serve.add_argument(
            f"--{option}", dest=f"http_{option}", default=argparse.SUPPRESS, help=f"with --http: the {text}"
        )
    serve.add_argument("--sse", action="store_true", help="with --http: also the older transport, at /sse (deprecated)")
    # As the one before the subcommand, which a default here would overwrite.
    serve.add_argument("--in-process", action="store_true", default=argparse.SUPPRESS, help="see madeleine --help")
    _add_tool_selection(serve)


def _add_ingest(commands: _Commands) -> None:
    ingest = commands.add_parser("ingest", help="ingest files: texts, Markdown, conversations as JSON lines")
    ingest.add_argument("files", metavar="file", nargs="+", help="- for standard input")
    ingest.add_argument("--session", metavar="S", help="the session that they belong to")
    ingest.add_argument("--category", metavar="C", help="the category of all memories; default: chosen for each")
    ingest.add_argument("--json", action="store_true", help="print the counts as JSON")


def _add_audit(commands: _Commands) -> None:
    audit = commands.add_parser("audit", help="show who did what to which memories, and when")
    audit.add_argument("--being", metavar="B", help="only this being's memories (default: all)")
    audit.add_argument("--since", metavar="T", help="ISO date or time")
    audit.add_argument("--until", metavar="T", help="ISO date or time, inclusive")
    audit.add_argument("--event", metavar="E", help="only this: store, recall, patrol and so on")
    audit.add_argument("--limit", metavar="N", type=int, default=100, help="the last N entries (default 100)")
    audit.add_argument("--json", action="store_true", help="one JSON object per line, with all ids")


def _add_patrol(commands: _Commands) -> None:
    patrol = commands.add_parser("patrol", help="tidy memory now, show or undo what patrols did, or watch them")
    patrol.add_argument(
        "--steps",
        metavar="names",
        help="only these, with commas between: assign, age, flag, consolidate, revive, split, merge, compress, diary",
    )
    patrol.add_argument("--dry-run", action="store_true", help="only report what would change")
    patrol.add_argument("--watch", action="store_true", help="show patrols as they run, whoever started them")
    patrol.add_argument("--json", action="store_true", help="as JSON; with --watch one object per line")
    verbs = patrol.add_subparsers(dest="verb", metavar="verb")
    runs = verbs.add_parser("runs", help="list patrols, the latest first: when, how they ended, what they changed")
    runs.add_argument("--limit", metavar="N", type=int, default=20, help="the last N (default 20)")
    undo = verbs.add_parser("undo", help="put back what a patrol changed")
    undo.add_argument("run", metavar="run", help="as `madeleine patrol runs` shows it")
    for verb in (runs, undo):
        # As the one before the verb, which a default here would overwrite.
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON")


def _add_token(commands: _Commands) -> None:
    token = commands.add_parser("token", help="make, list and revoke bearer tokens for HTTP")
    verbs = token.add_subparsers(dest="verb", metavar="verb", required=True)
    create = verbs.add_parser("create", help="make a token and print it, once")
    create.add_argument("--being", help="whose memory it opens (default: the setting)")
    create.add_argument("--role", choices=ROLES, default="agent", help="the role of its holder (default: agent)")
    create.add_argument("--read-only", action="store_true", help="only tools that change nothing")
    create.add_argument("--name", default="", help="its purpose, shown in the list")
    create.add_argument("--expires", help="a date (2027-01-31), a moment with its time, or a number of days (90d)")
    create.add_argument("--resource", help="the server's URL, as clients write it (default: the setting public_url)")
    verbs.add_parser("list", help="show all tokens, without their secrets")
    revoke = verbs.add_parser("revoke", help="refuse a token from now on")
    revoke.add_argument("id", help="as `madeleine token list` shows it")


def _add_observe(commands: _Commands) -> None:
    observe = commands.add_parser(
        "observe",
        help="record the messages of a conversation, from a hook",
        description="Reads a hook's input as Claude Code gives it, or a JSON list of messages with --session, or one "
        "message's text with --role and --session, on standard input. Prints nothing on standard output but the result "
        "of --recall, and exits with 0 whatever happens, so that an agent's turn goes on.",
    )
    observe.add_argument("--session", metavar="S", help="the conversation, if the input does not name it")
    observe.add_argument("--role", choices=("user", "assistant", "system", "tool"), help="the input is one's text")
    observe.add_argument("--speaker", metavar="NAME", help="with --role: who said it")
    observe.add_argument("--key", metavar="K", help="with --role: recorded once, however often it is sent")
    observe.add_argument("--recall", action="store_true", help="print the memories that match the user's message")
    observe.add_argument(
        "--timeout", metavar="S", type=_seconds, default=HOOK_SECONDS, help="give up after S seconds (default 8)"
    )
    observe.add_argument("--strict", action="store_true", help="exit with 1 if it was not recorded")


def _add_import(commands: _Commands) -> None:
    import_ = commands.add_parser(
        "import",
        help="import conversations that Claude or ChatGPT exported",
        description="Conversations become chat history, which can be searched. Messages that were imported before are "
        "skipped.",
    )
    import_.add_argument("files", metavar="file", nargs="+", help="the exported .zip, or its conversations.json")
    import_.add_argument(
        "--remember", action="store_true", help="have the memory thread turn them into memories, with a language model"
    )


def _add_profile(commands: _Commands) -> None:
    profile = commands.add_parser("profile", help="show and change who the being is: soul, rules, preferences, notes")
    verbs = profile.add_subparsers(dest="verb", metavar="verb", required=True)
    show = verbs.add_parser("show", help="list entries, all or of one kind")
    show.add_argument("kind", nargs="?", help=KINDS)
    show.add_argument("name", nargs="?", help="only this entry")
    show.add_argument("--json", action="store_true", help="as JSON")
    write = verbs.add_parser("set", help="write an entry, in place of the one of that name; or leave a note")
    write.add_argument("kind", help=KINDS)
    write.add_argument("name", help="the entry's name; for a note its type, as todo")
    write.add_argument("value", nargs="?", help="its text")
    write.add_argument("--file", metavar="F", help="read the text from a file; - for standard input")
    for verb, text in (("enable", "switch a partner rule or a preference on"), ("disable", "switch it off")):
        switch = verbs.add_parser(verb, help=text)
        switch.add_argument("kind", help="partner_rules or preferences")
        switch.add_argument("name", help="the entry's name")
    remove = verbs.add_parser("remove", help="remove an entry; a preference with its memory, which is forgotten")
    remove.add_argument("kind", help=KINDS)
    remove.add_argument("name", help="the entry's name; for a note its id")
    done = verbs.add_parser("done", help="mark a note as done")
    done.add_argument("name", help="the note's id, as `madeleine profile show` shows it")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 3600 seconds")
    return seconds
