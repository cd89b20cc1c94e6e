"""`madeleine observe`: records the messages of a conversation in the chat history (spec T1). For hooks of agents.

An agent's turn waits for a hook, and a hook that fails may end it. So only the standard library is imported, the time
is limited, standard output holds recalled memories alone, and the exit code is 0.
"""

from __future__ import annotations

import argparse
import io
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from madeleine.memory.errors import ConnectionLost, InvalidInput, MadeleineError
from madeleine.memory.text.structure import text_without_invisible_chars
from madeleine.server import EXIT_FAILURE
from madeleine.server.attach.tool_calls import CallToolAndWait, open_blocking_host_client
from madeleine.server.cli.observing.recalling import recall_for_compacted_conversation, recall_for_hook
from madeleine.server.cli.observing.recording import record_messages, request_archiving_of_session_memories
from madeleine.server.cli.observing.request import parse_observe_stdin
from madeleine.server.settings.environment import (
    DEFAULT_MAX_TEXT_CHARS,
    TOKEN_VARIABLE,
    URL_VARIABLE,
    read_environment_variables,
    read_settings_file,
    resolve_data_directory,
    setting_values_from_variables,
    settings_with_automatic_project_resolved,
)

OBSERVE_CLIENT_NAME = "madeleine observe"


@dataclass(frozen=True, slots=True)
class ObserveCommandOutput:
    """`output_text` goes to standard output, `error_text` to standard error."""

    output_text: str = ""
    error_text: str = ""


def observe_command(arguments: argparse.Namespace) -> int:
    """Always 0; with --strict 1 if something was not recorded."""
    outcome = observe_command_output_within_seconds(
        arguments.timeout, lambda deadline: run_observe_hook(arguments, deadline)
    )
    if outcome.output_text:
        print(outcome.output_text, flush=True)
    if outcome.error_text:
        print(f"madeleine: {text_without_invisible_chars(outcome.error_text)}", file=sys.stderr, flush=True)
    return EXIT_FAILURE if outcome.error_text and arguments.strict else 0


def observe_command_output_within_seconds(
    seconds: float, work: Callable[[float], ObserveCommandOutput]
) -> ObserveCommandOutput:
    """Run `work` in a thread, which is abandoned after `seconds`, as at a pipe that nobody closes. `work` is given its
    deadline, on the monotonic clock."""
    outcomes: list[ObserveCommandOutput] = []
    deadline = time.monotonic() + seconds

    def run() -> None:
        try:
            outcomes.append(work(deadline))
        except MadeleineError as error:
            is_lost = isinstance(error, ConnectionLost)
            hint = ". Nothing in the transcript is lost: it is read again." if is_lost else ""
            outcomes.append(ObserveCommandOutput(error_text=f"{error}{hint}"))
        except Exception as error:  # an agent waits, and a hook may not fail
            outcomes.append(ObserveCommandOutput(error_text=f"recording the conversation failed: {error!r}"))

    thread = threading.Thread(target=run, name="observe", daemon=True)
    thread.start()
    thread.join(seconds)
    late = ObserveCommandOutput(
        error_text=f"the memory did not answer within {seconds:g} s; the agent continues without it."
    )
    return outcomes[0] if outcomes else late


def run_observe_hook(arguments: argparse.Namespace, deadline: float) -> ObserveCommandOutput:
    # Not `sys.stdin`: an abandoned thread that reads it would delay the end of the process.
    text = io.FileIO(0, closefd=False).readall().decode("utf-8-sig", errors="replace")
    request = parse_observe_stdin(arguments, text)
    if request is None:
        return ObserveCommandOutput()
    with open_memory_client(arguments, deadline, request.directory) as (call, limit):
        complaint = recalled = ""
        if arguments.recall and request.compacted and not request.begins:
            # Before the prompt is among the messages that are searched.
            recalled = recall_for_compacted_conversation(call, request)
        try:
            record_messages(call, request, limit)
        except ConnectionLost:
            raise
        except MadeleineError as error:  # a read-only client may still recall
            complaint = str(error)
        if arguments.recall and not recalled:
            recalled = recall_for_hook(call, request)
        if request.ends:
            request_archiving_of_session_memories(call, request)
    return ObserveCommandOutput(recalled, complaint)


@contextmanager
def open_memory_client(
    arguments: argparse.Namespace, deadline: float, directory: Path | None = None
) -> Iterator[tuple[CallToolAndWait, int]]:
    """Tool calls to the server whose URL is named, else to the host of this machine; and how long a text may be.
    `directory`: where the conversation works."""
    variables = read_environment_variables()
    named = {"being": arguments.being, "data_dir": arguments.data_dir}
    settings = setting_values_from_variables(variables) | {name: value for name, value in named.items() if value}
    if url := arguments.url or variables.get(URL_VARIABLE):
        if any(named.values()):
            raise InvalidInput("--url: leave out --being and --data-dir; the token says whose memory it is.")
        from madeleine.server.attach.blocking_http import BlockingHttpToolClient

        token = variables.get(TOKEN_VARIABLE, "")
        client = BlockingHttpToolClient(url, token, name=OBSERVE_CLIENT_NAME, until=deadline)
        project = settings_with_automatic_project_resolved(settings, directory).get("project", "")
        yield _wrap_calls_with_project(client, project) if project else client, DEFAULT_MAX_TEXT_CHARS
        return
    data_dir = resolve_data_directory(settings.pop("data_dir", None))
    limit = max_text_chars_from_settings(settings, data_dir)
    # The tools used here need not be among those that a client has chosen for its model.
    chosen = {name: value for name, value in settings.items() if name not in ("tools", "exclude_tools")}
    settings = settings_with_automatic_project_resolved(chosen, directory) | {"toolsets": "all"}
    with open_blocking_host_client(data_dir, variables, settings, name=OBSERVE_CLIENT_NAME, until=deadline) as call:
        yield call, limit


def _wrap_calls_with_project(call: CallToolAndWait, project: str) -> CallToolAndWait:
    """A server knows nothing of the directory of a client's conversation: calls that name no project tell it."""

    def with_project(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        takes_project = tool in ("observe", "recall", "context")
        return call(tool, {**arguments, "project": arguments.get("project") or project} if takes_project else arguments)

    return with_project


def max_text_chars_from_settings(settings: Mapping[str, str], data_dir: Path) -> int:
    """`max_text_chars`, from the environment or the file. The host reports errors in them."""
    try:
        value = settings.get("max_text_chars") or read_settings_file(data_dir).get(
            "max_text_chars", DEFAULT_MAX_TEXT_CHARS
        )
        return max(1, int(value))
    except (OSError, TypeError, ValueError):
        return DEFAULT_MAX_TEXT_CHARS
