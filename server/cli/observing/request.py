"""What a hook, a program or a person gives `madeleine observe` on standard input, as a request."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from madeleine.memory.errors import InvalidInput
from madeleine.memory.watch.transcripts import (
    TranscriptMessage,
    is_compaction_summary_line,
    messages_from_transcript_lines,
    prompt_as_in_transcript,
    prompt_message_missing_from_transcript,
    text_without_program_additions,
)

CLAUDE_CODE_INTERFACE_NAME = "claude-code"


@dataclass(frozen=True, slots=True)
class ObserveRequest:
    """`arguments`: of the tool, without messages. `transcript`: the messages of a whole one, of which new ones are
    recorded; `messages` come after it. `prompt`: the user's last message. `begins`: the conversation begins, or goes on
    where it was compacted. `ends`: it ends. `compacted`: the model sees a summary of its beginning."""

    arguments: Mapping[str, Any]
    transcript: Sequence[Mapping[str, Any]] = ()
    messages: Sequence[Any] = ()
    prompt: str = ""
    begins: bool = False
    ends: bool = False
    compacted: bool = False
    directory: Path | None = None
    """Where the conversation works, if that is known."""


def parse_observe_stdin(arguments: argparse.Namespace, text: str) -> ObserveRequest | None:
    """`text`: standard input. None if there is nothing to record."""
    if arguments.role:
        optional = {"speaker": arguments.speaker, "key": arguments.key}
        message = {"role": arguments.role, "text": text.strip()} | {k: v for k, v in optional.items() if v}
        prompt = text.strip() if arguments.role == "user" else ""
        return ObserveRequest({"session_id": _require_session_argument(arguments)}, messages=[message], prompt=prompt)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"standard input is not JSON ({error}). Give a hook's input, a list of messages, or text with --role."
        ) from error
    if isinstance(content, list):
        return ObserveRequest({"session_id": _require_session_argument(arguments)}, messages=content)
    if not isinstance(content, dict):
        raise InvalidInput("standard input is neither a hook's input nor a list of messages.")
    if "hook_event_name" in content:
        request, directory = observe_request_of_claude_code_hook(content), content.get("cwd")
        return replace(request, directory=Path(directory)) if request and isinstance(directory, str) else request
    session = {} if "session_id" in content else {"session_id": _require_session_argument(arguments)}
    others = {name: value for name, value in content.items() if name != "messages"}
    return ObserveRequest(session | others, messages=content.get("messages") or [])


def observe_request_of_claude_code_hook(hook: Mapping[str, Any]) -> ObserveRequest | None:
    """The input of a hook of Claude Code. A subagent's messages are not part of the conversation."""
    event = hook["hook_event_name"]
    session = hook.get("session_id")
    if event == "SubagentStop" or hook.get("agent_id"):
        return None
    if not isinstance(session, str) or not session:
        raise InvalidInput(f"the hook's input ({event}) names no session_id.")
    title = hook.get("session_title")
    arguments = {"session_id": session, "interface": CLAUDE_CODE_INTERFACE_NAME}
    arguments |= {"title": title[:200]} if isinstance(title, str) and title.strip() else {}
    spoken, compacted = _read_transcript_and_is_compacted(hook.get("transcript_path"))
    transcript = [_transcript_message_as_argument(message) for message in spoken or ()]
    prompt_id = hook.get("prompt_id")
    if event == "UserPromptSubmit" and isinstance(hook.get("prompt"), str):
        prompt = "" if hook.get("source") == "system" else prompt_as_in_transcript(hook["prompt"])
        message = prompt_message_missing_from_transcript(spoken or (), prompt, str(prompt_id or "")) if prompt else None
        return ObserveRequest(
            arguments,
            transcript,
            [_transcript_message_as_argument(message)] if message else [],
            prompt,
            compacted=compacted,
        )
    if spoken is None and event == "Stop" and isinstance(last := hook.get("last_assistant_message"), str):
        key = {"key": f"answer-{prompt_id}"} if isinstance(prompt_id, str) else {}
        answer = text_without_program_additions(last)
        return ObserveRequest(arguments, messages=[{"role": "assistant", "text": answer} | key] if answer else [])
    begins = event == "SessionStart"
    compacted = begins and hook.get("source") == "compact"
    prompts = [message.text for message in spoken or () if message.role == "user"] if compacted else []
    prompt, ends = "".join(prompts[-1:]), event == "SessionEnd"
    return ObserveRequest(arguments, transcript, prompt=prompt, begins=begins, ends=ends, compacted=compacted)


def _transcript_message_as_argument(message: TranscriptMessage) -> dict[str, Any]:
    at = {"when": message.at} if message.at else {}
    return {"role": message.role, "text": message.text, "key": message.key} | at


def _read_transcript_and_is_compacted(path: Any) -> tuple[list[TranscriptMessage] | None, bool]:
    """What was said, None if there is no file, as before the first answer; and whether it was compacted."""
    if not isinstance(path, str) or not path:
        return None, False
    compacted = False

    def noticed(lines: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal compacted
        for line in lines:
            compacted = compacted or is_compaction_summary_line(line)
            yield line

    try:
        with Path(path).expanduser().open("rb") as file:
            return messages_from_transcript_lines(noticed(file)), compacted
    except FileNotFoundError:
        return None, False
    except OSError as error:
        raise InvalidInput(f"the transcript {path} cannot be read: {error}") from error


def _require_session_argument(arguments: argparse.Namespace) -> str:
    if not arguments.session:
        raise InvalidInput("name the conversation: --session S")
    return str(arguments.session)
