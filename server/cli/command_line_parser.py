"""The parser of the command line, and of its numbers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from madeleine.memory.text.structure import text_without_invisible_chars
from madeleine.server.cli.help import text as help_text


class ExamplesKeepingHelpFormatter(argparse.HelpFormatter):
    """Leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(help_text.COMMAND_EXAMPLES_HEADING):
            return text + "\n"
        return super()._fill_text(text, width, indent)


class CommandLineParser(argparse.ArgumentParser):
    """Its errors quote arguments, which may come from anywhere: no control character of theirs reaches a terminal."""

    def __init__(self, **options: Any) -> None:
        examples = help_text.help_examples_of_command(str(options.get("prog", "")).partition(" ")[2])
        super().__init__(**{"epilog": examples, "formatter_class": ExamplesKeepingHelpFormatter, **options})

    def error(self, message: str) -> NoReturn:
        super().error(text_without_invisible_chars(help_text.command_error_with_nearest_name(message)))

    def format_help(self) -> str:
        """With the commands in groups, in the help of the command itself."""
        text = super().format_help()
        commands = next((one for one in self._actions if isinstance(one, argparse._SubParsersAction)), None)
        if commands is None or commands.dest != "command":
            return text
        helps = {choice.dest: choice.help or "" for choice in commands._choices_actions}
        beginning, _, options = text.partition("positional arguments:\n")
        return f"{beginning}{help_text.grouped_commands_help_text(helps)}\n{options[options.index('options:') :]}"

    def long_option_strings(self, names: Sequence[str]) -> set[str]:
        """The long options of this command, and of the command and verb of these names."""
        options = {option for option in self._option_string_actions if option.startswith("--")}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and names and names[0] in action.choices:
                options |= action.choices[names[0]].long_option_strings(names[1:])
        return options


def parse_positive_count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return count


def parse_timeout_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 3600 seconds")
    return seconds
