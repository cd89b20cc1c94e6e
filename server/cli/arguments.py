"""The grammar of the command `madeleine`. Imported at every start: standard library and little else."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from madeleine.memory.model import CALLER_ROLES, ORGANISATION_KNOWLEDGE_KINDS
from madeleine.server import __version__
from madeleine.server.cli.archive.arguments import add_archive_commands
from madeleine.server.cli.command_line_parser import CommandLineParser, parse_positive_count, parse_timeout_seconds
from madeleine.server.cli.looking.arguments import add_costs_command, add_graph_command
from madeleine.server.suggestions import did_you_mean_text

PROFILE_KINDS_HELP = "soul, partner_rules, preferences, relationships, tools, map, knowledge or notes"
DEFAULT_OBSERVE_TIMEOUT_SECONDS = 8.0
"""Default time limit of `madeleine observe`."""
ARGPARSE_FLAG_KEYWORDS_WITHOUT_DEFAULT: dict[str, Any] = {"action": "store_true", "default": argparse.SUPPRESS}
"""An option that may stand before or behind a subcommand, whose default would overwrite it; see `set_defaults`."""

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction["CommandLineParser"]


def parse_command_line(argv: Sequence[str] | None) -> argparse.Namespace:
    """`command` is always set. Raises `SystemExit`."""
    grammar = build_command_line_parser()
    arguments, unknown = grammar.parse_known_args(argv)
    if unknown:
        names = [name for name in (arguments.command, getattr(arguments, "verb", None)) if name]
        option = unknown[0].partition("=")[0]
        meant = did_you_mean_text(option, grammar.long_option_strings(names)) if option.startswith("--") else ""
        kind = "option" if option.startswith("-") else "argument"
        grammar.error(f"There is no {kind} {option!r} here.{meant}")
    arguments.command = arguments.command or "serve"
    if not arguments.http and (arguments.sse or hasattr(arguments, "http_host") or hasattr(arguments, "http_port")):
        grammar.error("--host, --port and --sse need --http.")
    return arguments


def build_command_line_parser() -> CommandLineParser:
    serving, json = _serving_options_parser(), CommandLineParser(add_help=False)
    json.add_argument(
        "--json",
        **ARGPARSE_FLAG_KEYWORDS_WITHOUT_DEFAULT,
        help="print JSON; audit entries and watched events one per line",
    )
    grammar = CommandLineParser(
        prog="madeleine",
        description="Long-term memory for AI agents, an MCP server. Without a command: serve MCP on stdin and stdout, "
        "through the one process that owns the memory; it is started if there is none.",
        parents=[serving],
    )
    grammar.set_defaults(http=False, sse=False, in_process=False, json=False)
    grammar.add_argument("--version", action="version", version=f"madeleine {__version__}")
    commands = grammar.add_subparsers(dest="command", metavar="command")
    _add_serve_command(commands, serving)
    commands.add_parser("status", parents=[json], help="show the process that owns the memory, and its clients")
    commands.add_parser("stop", parents=[json], help="end that process, after its calls in progress")
    reindex = commands.add_parser("reindex", parents=[json], help="rebuild the index from the ledger")
    text = "begin with an empty memory; the files of the old one are kept in a folder beside"
    reindex.add_argument("--start-anew", action="store_true", help=text)
    note = commands.add_parser("note", parents=[json], help="put scene notes into the inbox, for the next patrol")
    note.add_argument("file", help="a file with one scene as JSON per line; - for standard input")
    _add_ingest_command(commands, json)
    _add_audit_command(commands, json)
    _add_patrol_command(commands, json)
    _add_ui_command(commands)
    _add_token_command(commands, json)
    _add_observe_command(commands)
    _add_import_and_move_in_commands(commands, json)
    _add_export_backup_and_restore_commands(commands, json)
    _add_profile_command(commands, json)
    _add_models_command(commands, json)
    _add_org_command(commands, json)
    add_archive_commands(commands, json)
    _add_init_and_config_commands(commands, json)
    _add_why_and_doctor_commands(commands, json)
    add_graph_command(commands, json)
    add_costs_command(commands, json)
    _add_help_and_completion_commands(commands)
    return grammar


def _add_why_and_doctor_commands(commands: Subparsers, json: CommandLineParser) -> None:
    text = "show what a query finds, and why; or why one memory comes or does not"
    add = commands.add_parser("why", parents=[json], help=text).add_argument
    add("query", help="what a client would ask")
    add("id", nargs="?", help="a memory, as m12")
    add(
        "--limit",
        metavar="N",
        type=parse_positive_count,
        help="memories that the recall returns (default: what matches)",
    )
    text = "look for what is wrong with this installation and its memory; nothing is changed"
    add = commands.add_parser("doctor", parents=[json], help=text).add_argument
    add("--quick", action="store_true", help="without the checks that read the whole memory")


def _add_help_and_completion_commands(commands: Subparsers) -> None:
    add = commands.add_parser("help", help="show a page of the documentation, or the list of pages").add_argument
    add("topic", nargs="?", help="as recall, truth, hooks")
    text = "print the completion of this command for a shell"
    commands.add_parser("completion", help=text).add_argument("shell", choices=("bash", "zsh", "fish"))


def _serving_options_parser() -> CommandLineParser:
    options = CommandLineParser(add_help=False)
    options.add_argument(
        "--in-process", **ARGPARSE_FLAG_KEYWORDS_WITHOUT_DEFAULT, help="serve in this process, as in a container"
    )
    options.add_argument("--read-only", **ARGPARSE_FLAG_KEYWORDS_WITHOUT_DEFAULT, help="only tools that change nothing")
    text = "carried out by a server over HTTP (default: MADELEINE_URL); its token comes from MADELEINE_TOKEN"
    options.add_argument("--url", metavar="URL", default=argparse.SUPPRESS, help=text)
    families = "memory, patrol, conversation, context, organisation, lessons, graph, self_editing, archive; or all"
    for option, text in {
        "--toolsets": f"only these families of tools, separated by commas ({families})",
        "--tools": "only these tools, or these beside those of --toolsets",
        "--exclude-tools": "not these tools",
    }.items():
        options.add_argument(option, metavar="names", default=argparse.SUPPRESS, help=text)
    return options


def _add_serve_command(commands: Subparsers, serving: CommandLineParser) -> None:
    text = "serve MCP, on standard input and output (the default) or over HTTP"
    add = commands.add_parser("serve", parents=[serving], help=text).add_argument
    add("--http", **ARGPARSE_FLAG_KEYWORDS_WITHOUT_DEFAULT, help="serve streamable HTTP at /mcp instead")
    add(
        "--sse",
        **ARGPARSE_FLAG_KEYWORDS_WITHOUT_DEFAULT,
        help="with --http: also the older transport, at /sse (deprecated)",
    )
    for option, text in (("host", "address to listen on (default 127.0.0.1)"), ("port", "port (default 8765; 0: any)")):
        add(f"--{option}", dest=f"http_{option}", default=argparse.SUPPRESS, help=f"with --http: the {text}")


def _add_ingest_command(commands: Subparsers, json: CommandLineParser) -> None:
    text = "ingest files: texts, Markdown, conversations as JSON lines"
    add = commands.add_parser("ingest", parents=[json], help=text).add_argument
    add("files", metavar="file", nargs="+", help="- for standard input")
    add("--session", metavar="S", help="the session that they belong to")
    add("--category", metavar="C", help="the category of all memories; default: chosen for each")


def _add_audit_command(commands: Subparsers, json: CommandLineParser) -> None:
    text = "show who did what to which memories, and when"
    add = commands.add_parser("audit", parents=[json], help=text).add_argument
    add("--being", metavar="B", help="only this being's memories (default: all)")
    add("--since", metavar="T", help="ISO date or time")
    add("--until", metavar="T", help="ISO date or time, inclusive")
    add("--event", metavar="E", help="only this: store, recall, patrol and so on")
    add("--limit", metavar="N", type=parse_positive_count, default=100, help="the last N entries (default 100)")


def _add_patrol_command(commands: Subparsers, json: CommandLineParser) -> None:
    text = "tidy memory now, show or undo what patrols did, or watch them"
    patrol = commands.add_parser("patrol", parents=[json], help=text)
    steps = "assign, age, flag, consolidate, revive, split, merge, supersede, compress, diary"
    patrol.add_argument("--steps", metavar="names", help=f"only these, with commas between: {steps}")
    patrol.add_argument("--dry-run", action="store_true", help="only report what would change")
    patrol.add_argument("--watch", action="store_true", help="show patrols as they run, whoever started them")
    verbs = patrol.add_subparsers(dest="verb", metavar="verb")
    text = "list patrols, the latest first: when, how they ended, what they changed"
    runs = verbs.add_parser("runs", parents=[json], help=text)
    runs.add_argument("--limit", metavar="N", type=parse_positive_count, default=20, help="the last N (default 20)")
    undo = verbs.add_parser("undo", parents=[json], help="put back what a patrol changed")
    undo.add_argument("run", metavar="run", help="as `madeleine patrol runs` shows it")


def _add_ui_command(commands: Subparsers) -> None:
    text = "open the page, to look at the memory and correct it in a browser of this machine; Ctrl-C ends it"
    add = commands.add_parser("ui", help=text).add_argument
    add("--port", type=int, default=0, help="the port that it is served at (default: any free one)")
    add("--no-browser", action="store_true", help="print the link and open no browser")


def _add_token_command(commands: Subparsers, json: CommandLineParser) -> None:
    token = commands.add_parser("token", help="make, list and revoke bearer tokens for HTTP")
    verbs = token.add_subparsers(dest="verb", metavar="verb", required=True)
    add = verbs.add_parser("create", parents=[json], help="make a token and print it, once").add_argument
    add("--being", help="whose memory it opens (default: the setting)")
    add("--role", choices=CALLER_ROLES, default="agent", help="the role of its holder (default: agent)")
    add("--read-only", action="store_true", help="only tools that change nothing")
    add("--name", default="", help="its purpose, shown in the list")
    add("--expires", help="a date (2027-01-31), a moment with its time, or a number of days (90d)")
    add("--resource", help="the server's URL, as clients write it (default: by the settings, or of the running server)")
    verbs.add_parser("list", parents=[json], help="show all tokens, without their secrets")
    revoke = verbs.add_parser("revoke", parents=[json], help="refuse a token from now on")
    revoke.add_argument("id", help="as `madeleine token list` shows it")


def _add_observe_command(commands: Subparsers) -> None:
    add = commands.add_parser(
        "observe",
        help="record the messages of a conversation, from a hook",
        description="Reads a hook's input as Claude Code gives it, or a JSON list of messages with --session, or one "
        "message's text with --role and --session, on standard input. Prints nothing on standard output but the result "
        "of --recall, and exits with 0 whatever happens, so that an agent's turn goes on.",
    ).add_argument
    add("--session", metavar="S", help="the conversation, if the input does not name it")
    add("--role", choices=("user", "assistant", "system", "tool"), help="the input is one's text")
    add("--speaker", metavar="NAME", help="with --role: who said it")
    add("--key", metavar="K", help="with --role: recorded once, however often it is sent")
    add("--recall", action="store_true", help="print the memories that match the user's message")
    text = "give up after S seconds (default 8)"
    add("--timeout", metavar="S", type=parse_timeout_seconds, default=DEFAULT_OBSERVE_TIMEOUT_SECONDS, help=text)
    add("--strict", action="store_true", help="exit with 1 if it was not recorded")
    add("--being", metavar="B", help="whose memory (default: the setting)")
    add("--data-dir", metavar="D", help="its folder (default: the setting)")
    text = "to a server over HTTP (default: MADELEINE_URL); its token comes from MADELEINE_TOKEN"
    add("--url", metavar="URL", help=text)


def _add_init_and_config_commands(commands: Subparsers, json: CommandLineParser) -> None:
    text = "put this server into the configuration of the MCP clients on this machine"
    add = commands.add_parser(
        "init",
        help=text,
        description="Finds Claude Code, Claude Desktop, Codex, Cursor, Gemini CLI, VS Code, Windsurf and Zed, shows "
        "the change to each one's files, asks, keeps a backup beside the file, and writes. Comments and other keys "
        "stay.",
    ).add_argument
    add("--client", metavar="NAME", action="append", help="only this one, found or not; may be repeated")
    add("--dry-run", action="store_true", help="only show the changes")
    add("--yes", action="store_true", help="do not ask")
    add("--undo", action="store_true", help="take out again what was put in")
    text = "print the configuration for an MCP client, with this installation's path"
    config = commands.add_parser("config", parents=[json], help=text)
    config.add_argument("--client", metavar="NAME", help="in the form of this client, as `madeleine init` names it")


def _add_models_command(commands: Subparsers, json: CommandLineParser) -> None:
    models = commands.add_parser("models", help="list, evaluate, switch, calibrate and train embedding models")
    verbs = models.add_subparsers(dest="verb", metavar="verb", required=True)
    verbs.add_parser("list", parents=[json], help="show which model serves, and which there are without a network")
    text = "measure models on labelled queries; the memory is not changed"
    evaluate = verbs.add_parser("evaluate", parents=[json], help=text).add_argument
    evaluate("models", metavar="model", nargs="*", help="names or directories (default: the one that serves)")
    evaluate("--queries", metavar="FILE", help='JSON lines: {"query": "…", "relevant": ["m12"], "category": "…"}')
    evaluate("--data", metavar="FOLDER", help="sets: NAME.docs.jsonl and NAME.queries.jsonl, plain or .xz")
    evaluate("--sets", metavar="names", help="with --data: only these, with commas between")
    switch = verbs.add_parser(
        "switch", parents=[json], help="change over to another model while the memory is in use"
    ).add_argument
    switch("model", metavar="model", nargs="?", help="a name or a directory")
    switch("--back", action="store_true", help="to the model that served before")
    switch("--no-wait", action="store_true", help="return at once; `madeleine models list` shows the progress")
    text = "fit the thresholds to the model that serves, by the memory's own texts"
    verbs.add_parser("calibrate", parents=[json], help=text)
    train = verbs.add_parser("train", parents=[json], help="fit a model to your own documents by a linear adapter")
    train.add_argument("checkpoint", help="the directory that the adapted model is written to")
    train.add_argument("--from", dest="source", metavar="FOLDER", help="documents (default: the being's memories)")
    train.add_argument("--base", metavar="MODEL", help="the model to adapt (default: the one that serves)")
    text = "let the language model write questions as well; it costs tokens"
    train.add_argument("--with-language-model", action="store_true", help=text)


def _add_import_and_move_in_commands(commands: Subparsers, json: CommandLineParser) -> None:
    add = commands.add_parser(
        "import",
        parents=[json],
        help="import what `madeleine export` wrote, or what other programs keep: chats, transcripts, memories, notes",
        description="What a file is, is told from its contents. Memories and notes become memories, conversations "
        "become chat history, which can be searched. Nothing that is here is overwritten, nothing that was forgotten "
        "here comes back, and what was imported before is skipped.",
    ).add_argument
    add("files", metavar="path", nargs="*", help="files, archives and folders")
    add("--being", metavar="B", help="whose it becomes (default: an export's own beings; the setting)")
    add("--dry-run", action="store_true", help="only report what would be added, with samples")
    add("--undo", metavar="ID", help="take back what an import has added")
    add("--list", action="store_true", help="list the imports, the latest first")
    text = "have the memory thread turn conversations into memories, with a language model"
    add("--remember", action="store_true", help=text)
    add = commands.add_parser(
        "move-in",
        parents=[json],
        help="find what other programs remember on this machine, show it, and import it",
        description="Looks at the places where coding agents and memory servers keep their files. Nothing is imported "
        "before you have seen what it is and said yes.",
    ).add_argument
    add("--being", metavar="B", help="whose it becomes (default: the setting)")
    add("--dry-run", action="store_true", help="only show what there is")
    add("--yes", action="store_true", help="do not ask")
    add("--home", metavar="FOLDER", help="look in this home directory instead of yours")
    add("--remember", action="store_true", help=text)


def _add_export_backup_and_restore_commands(commands: Subparsers, json: CommandLineParser) -> None:
    add = commands.add_parser(
        "export", parents=[json], help="write all that is kept into one file, also while clients use it"
    ).add_argument
    add(
        "target", metavar="file", help="a new file, an earlier export, or - for standard output; with markdown a folder"
    )
    add("--being", metavar="B", help="only this being's (default: all)")
    text = "jsonl, which `madeleine import` takes back (default), or markdown, to read"
    add("--format", choices=("jsonl", "markdown"), default="jsonl", help=text)
    add("--journal", action="store_true", help="also what patrols changed")
    add = commands.add_parser(
        "backup", parents=[json], help="copy the whole memory into one file, also while clients use it"
    ).add_argument
    add("file", nargs="?", help="default: a new file in the folder of backups")
    text = "put a backup in the place of the memory, which is kept beside"
    add = commands.add_parser("restore", parents=[json], help=text).add_argument
    add("file", help="as `madeleine backup` wrote it")
    add("--yes", action="store_true", help="do not ask")


def _add_profile_command(commands: Subparsers, json: CommandLineParser) -> None:
    profile = commands.add_parser("profile", help="show and change who the being is: soul, rules, preferences, notes")
    verbs = profile.add_subparsers(dest="verb", metavar="verb", required=True)
    show = verbs.add_parser("show", parents=[json], help="list entries, all or of one kind")
    show.add_argument("kind", nargs="?", help=PROFILE_KINDS_HELP)
    show.add_argument("name", nargs="?", help="only this entry")
    text = "write an entry, in place of the one of that name; or leave a note"
    add = verbs.add_parser("set", parents=[json], help=text).add_argument
    add("kind", help=PROFILE_KINDS_HELP)
    add("name", help="the entry's name; for a note its type, as todo")
    add("value", nargs="?", help="its text")
    add("--file", metavar="F", help="read the text from a file; - for standard input")
    for verb, text in (("enable", "switch a partner rule or a preference on"), ("disable", "switch it off")):
        add = verbs.add_parser(verb, parents=[json], help=text).add_argument
        add("kind", help="partner_rules or preferences")
        add("name", help="the entry's name")
    text = "remove an entry; a preference with its memory, which is forgotten"
    add = verbs.add_parser("remove", parents=[json], help=text).add_argument
    add("kind", help=PROFILE_KINDS_HELP)
    add("name", help="the entry's name; for a note its id")
    done = verbs.add_parser("done", parents=[json], help="mark a note as done")
    done.add_argument("name", help="the note's id, as `madeleine profile show` shows it")


def _add_org_command(commands: Subparsers, json: CommandLineParser) -> None:
    text = "share, find and retract what all beings know: policies, decisions, procedures, conventions"
    verbs = commands.add_parser("org", help=text).add_subparsers(dest="verb", metavar="verb", required=True)
    add = verbs.add_parser("share", parents=[json], help="share a fact, or a version in place of one").add_argument
    add("text", nargs="?", help="the fact; - for standard input")
    add("--memory", metavar="ID", help="share this memory of yours in place of a text")
    add("--kind", choices=ORGANISATION_KNOWLEDGE_KINDS, default="knowledge", help="default: knowledge")
    add("--when", metavar="DATE", help="since when it is true")
    add("--supersedes", metavar="ID", help="what it takes the place of, of the same kind")
    add = verbs.add_parser("search", parents=[json], help="search what is shared, with your own memories").add_argument
    add("query")
    add("--limit", metavar="N", type=parse_positive_count, default=10, help="default: 10")
    show = verbs.add_parser("list", parents=[json], help="list what is shared, policies first").add_argument
    show("--kind", choices=ORGANISATION_KNOWLEDGE_KINDS, action="append", help="only this kind; may be repeated")
    show("--as-of", metavar="DATE", help="what was true then")
    show("--limit", metavar="N", type=parse_positive_count, default=50, help="default: 50")
    history = verbs.add_parser("history", parents=[json], help="show all versions of a fact, with their authors")
    history.add_argument("id", help="as `madeleine org list` shows it")
    add = verbs.add_parser("retract", parents=[json], help="take back what was wrong; its history is kept").add_argument
    add("id", help="as `madeleine org list` shows it")
    add("reason", nargs="?", help="why it was never true")
    add("--undo", action="store_true", help="take back its last supersession or retraction")
    add("--erase", action="store_true", help="erase it for good")
