"""The help of the command `madeleine`: commands in groups, examples, and the nearest one to a name that is mistyped."""

from __future__ import annotations

import re
from collections.abc import Mapping

from madeleine.server.suggestions import did_you_mean_text

COMMAND_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Connect clients": ("init", "serve", "config", "status", "stop", "token"),
    "Remember": ("observe", "note", "ingest", "profile", "org"),
    "Look": ("ui", "why", "graph", "costs", "audit", "doctor"),
    "Maintain": ("patrol", "retention", "archive", "models", "reindex"),
    "Move and keep": ("move-in", "export", "import", "backup", "restore"),
    "Help": ("help", "completion"),
}
OTHER_COMMANDS_HEADING = "More"
COMMAND_EXAMPLES_HEADING = "examples:"
COMMAND_EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": (
        "madeleine init                                  put it into the MCP clients on this machine",
        "madeleine ui                                    look at the memory in a browser",
        "madeleine why 'Where do we live?'               what a recall finds, and why",
        "madeleine doctor                                what is wrong, and what to do",
        "madeleine help recall                           the page on recall",
    ),
    "archive": ("madeleine archive list 'harbour'", "madeleine archive restore m12"),
    "audit": ("madeleine audit --event recall --since 2026-03-01", "madeleine audit --json --limit 1000"),
    "backup": ("madeleine backup", "madeleine backup /mnt/disk/memory.db"),
    "completion": (
        "madeleine completion bash > ~/.local/share/bash-completion/completions/madeleine",
        'madeleine completion zsh > "${fpath[1]}/_madeleine"',
        "madeleine completion fish > ~/.config/fish/completions/madeleine.fish",
    ),
    "costs": ("madeleine costs --since 2026-03-01", "madeleine costs --by model --json"),
    "doctor": ("madeleine doctor", "madeleine doctor --json | jq '.findings[] | select(.level == \"problem\")'"),
    "export": ("madeleine export memory.jsonl", "madeleine export --being ada --format markdown notes/"),
    "graph": ("madeleine graph", "madeleine graph 'Mia Berger' --hops 2", "madeleine graph Bern --as-of 2025-06-01"),
    "help": ("madeleine help", "madeleine help truth"),
    "import": ("madeleine import memory.jsonl --dry-run", "madeleine import conversations.json"),
    "init": ("madeleine init", "madeleine init --client cursor --dry-run", "madeleine init --undo"),
    "move-in": ("madeleine move-in",),
    "org": ("madeleine org share 'We deploy on Tuesdays' --kind convention", "madeleine org list"),
    "ingest": ("madeleine ingest notes.md book.txt", "some-program | madeleine ingest -"),
    "models": ("madeleine models list", "madeleine models switch all-MiniLM-L6-v2"),
    "note": ("""echo '{"action": "We moved to the harbour."}' | madeleine note -""",),
    "observe": ('echo "I live by the harbour" | madeleine observe --session talk-7 --role user',),
    "patrol": ("madeleine patrol --dry-run", "madeleine patrol runs", "madeleine patrol undo RUN"),
    "profile": ("madeleine profile set soul voice 'calm and kind'", "madeleine profile show"),
    "retention": ("madeleine retention --dry-run",),
    "restore": ("madeleine restore /mnt/disk/memory.db",),
    "serve": ("madeleine", "madeleine serve --http --port 8765"),
    "status": ("madeleine status", "madeleine status --json"),
    "token": ("madeleine token create --being ada --name laptop --expires 90d", "madeleine token list"),
    "why": ("madeleine why 'Where do we live?'", "madeleine why 'Where do we live?' m12"),
}
_ARGPARSE_INVALID_CHOICE_ERROR_PATTERN = re.compile(
    r"argument (?P<where>\S+): invalid choice: '(?P<given>.*?)' \(choose from (?P<known>.*)\)"
)


def help_examples_of_command(command: str) -> str:
    """The part of a help text with examples; "" where there are none."""
    return (
        "\n".join((COMMAND_EXAMPLES_HEADING, *(f"  {line}" for line in COMMAND_EXAMPLES[command])))
        if command in COMMAND_EXAMPLES
        else ""
    )


def grouped_commands_help_text(help_by_command: Mapping[str, str]) -> str:
    """A line a command, in groups; one that is in no group stands at the end."""
    grouped = {command for commands in COMMAND_GROUPS.values() for command in commands}
    others = tuple(command for command in help_by_command if command not in grouped)
    width = max(map(len, help_by_command), default=0) + 2
    lines: list[str] = []
    for group, commands in {**COMMAND_GROUPS, OTHER_COMMANDS_HEADING: others}.items():
        if known := [command for command in commands if command in help_by_command]:
            lines += [f"{group}:", *(f"    {command:<{width}}{help_by_command[command]}" for command in known), ""]
    return "\n".join(lines)


def command_error_with_nearest_name(message: str) -> str:
    """An error of argparse for a wrong command or verb, with the nearest name instead of all of them."""
    match = _ARGPARSE_INVALID_CHOICE_ERROR_PATTERN.search(message)
    if match is None or match["where"] not in ("command", "verb"):
        return message
    known = re.findall(r"[\w-]+", match["known"])
    return f"There is no {match['where']} {match['given']!r}.{did_you_mean_text(match['given'], known)}"
