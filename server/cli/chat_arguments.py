"""The words of the commands that feed the chat history (`server.cli.arguments`)."""

from __future__ import annotations

import argparse
from typing import Any

TIMEOUT_SECONDS = 8.0


def add_chat_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    observe = commands.add_parser(
        "observe",
        help="keep what is said in a conversation, from a hook",
        description="Reads a hook's input as Claude Code gives it, or a JSON list of messages with --session, or one "
        "message's text with --role and --session, on standard input. Says nothing on standard output, but what "
        "--recall finds, and ends with 0 whatever happens: an agent's turn goes on.",
    )
    observe.add_argument("--session", metavar="S", help="which conversation it is, where the input does not say")
    observe.add_argument("--role", choices=("user", "assistant", "system", "tool"), help="the input is one's text")
    observe.add_argument("--speaker", metavar="NAME", help="with --role: who said it")
    observe.add_argument("--key", metavar="K", help="with --role: kept once, however often it is sent")
    observe.add_argument("--recall", action="store_true", help="print what comes to mind of what the user says")
    observe.add_argument(
        "--timeout", metavar="S", type=_seconds, default=TIMEOUT_SECONDS, help="give up after S seconds (default 8)"
    )
    observe.add_argument("--strict", action="store_true", help="end with 1 if it was not kept")
    imported = commands.add_parser(
        "import",
        help="take in conversations that Claude or ChatGPT exported",
        description="Conversations become chat history, which is searched and nothing more. What is here already is "
        "not taken in again.",
    )
    imported.add_argument("files", metavar="file", nargs="+", help="the .zip that was sent, or its conversations.json")
    imported.add_argument(
        "--remember", action="store_true", help="have the memory thread look at them: they become memories, by a model"
    )


def _seconds(text: str) -> Any:
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 3600 seconds")
    return seconds
