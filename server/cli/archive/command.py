"""`madeleine retention` and `madeleine archive`: what goes into the archive, what is there, what comes back (spec O8).
Done by the host, through the tools of an agent."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server import EXIT_USAGE
from madeleine.server.cli.output import empty_table_with_headings, make_console, open_tool_client, print_json
from madeleine.server.counted import count_phrase
from madeleine.server.crash_output import print_error
from madeleine.server.settings.settings import Settings

NOTHING_TO_ARCHIVE_MESSAGE = "Nothing's time is over. MADELEINE_RETENTION sets how long memories are kept."
NO_SESSION_OR_PROJECT_MEMORIES_MESSAGE = "Nothing is kept for that session or project."
ARCHIVE_COMMAND_CONNECTION_LOST_HINT = "`madeleine archive list` tells what became of it."


async def retention_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Raises `HostRefused`, and the error that the tool answers with."""
    if arguments.dry_run:
        plan = await _call_tool(settings, "archive", {"action": "plan"}, "madeleine retention")
        if arguments.json:
            print_json(plan)
        else:
            _print_retention_plan(plan)
        return
    report = await _call_tool(settings, "run_patrol", {"steps": ["retention"]}, "madeleine retention")
    if arguments.json:
        print_json(report)
        return
    archived = sum(step.get("archived", 0) for step in report["steps"])
    print(_archived_count_with_undo_hint(archived, report["run_id"]) if archived else NOTHING_TO_ARCHIVE_MESSAGE)


async def archive_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code: `EXIT_USAGE` if an id to restore is not in the archive. Raises as `retention_command` does."""
    match arguments.verb:
        case "list":
            values = {"action": "groups" if arguments.groups else "find", "query": arguments.query}
            values |= {"limit": arguments.limit, "position": arguments.position}
        case "restore":
            values = {"action": "restore", "ids": arguments.id}
        case _:
            values = {"action": "end", "session_id": arguments.session, "project": arguments.project}
    answer = await _call_tool(settings, "archive", values, "madeleine archive")
    if arguments.json:
        print_json(answer)
    elif arguments.verb == "list":
        _print_archived_groups(answer["groups"]) if arguments.groups else _print_archived_memories(answer["memories"])
    elif arguments.verb == "restore":
        for memory in answer["memories"]:
            print(f"{memory['id']} is back: {terminal_safe_line(memory['text'])}")
    else:
        run_id = answer.get("run_id")
        print(
            _archived_count_with_undo_hint(answer["archived"], run_id)
            if run_id
            else NO_SESSION_OR_PROJECT_MEMORIES_MESSAGE
        )
    if missing := answer.get("missing"):
        print_error(
            f"not in the archive: {terminal_safe_line(', '.join(missing))}. `madeleine archive list` shows what is."
        )
        return EXIT_USAGE
    return 0


def _archived_count_with_undo_hint(archived: int, run_id: str) -> str:
    return f"{archived} archived. `madeleine patrol undo {run_id}` takes it back."


async def _call_tool(settings: Settings, tool: str, arguments: Mapping[str, Any], command: str) -> dict[str, Any]:
    async with open_tool_client(
        settings, tool, command=command, lost_hint=ARCHIVE_COMMAND_CONNECTION_LOST_HINT
    ) as call:
        return await call(tool, {name: value for name, value in arguments.items() if value is not None})


def _print_retention_plan(plan: Mapping[str, Any]) -> None:
    rules = plan["rules"]
    kept = (count_phrase(rule["days"], "day") if "days" in rule else "for good" for rule in rules)
    of_rules = [(rule["category"], days, rule["from"]) for rule, days in zip(rules, kept, strict=True)]
    _print_table(("category", "kept", "by"), of_rules)
    if most := plan.get("max_memories"):
        print(f"At most {count_phrase(most, 'memory', 'memories')}.")
    print()
    if not plan["archived"]:
        print(NOTHING_TO_ARCHIVE_MESSAGE)
        return
    reasons = ("expired", "limit", "session_ended", "project_ended")
    rows = [
        (group["category"], reason.replace("_", " "), str(len(group[reason])), ", ".join(group[reason]))
        for group in plan["groups"]
        for reason in reasons
        if reason in group
    ]
    _print_table(("category", "why", "number", "memories"), rows)
    print(f"{plan['archived']} would be archived; nothing was changed.")


def _print_archived_memories(entries: Sequence[Mapping[str, Any]]) -> None:
    if not entries:
        print("Nothing of that is archived.")
        return
    rows = [(entry["id"], entry["when"], entry["archived"], entry["reason"], entry["text"]) for entry in entries]
    _print_table(("id", "when", "archived", "why", "text"), rows)


def _print_archived_groups(groups: Sequence[Mapping[str, Any]]) -> None:
    names = ("group", "category", "archived", "memories", "mode", "told_by", "digest")
    if not groups:
        print("Nothing is archived.")
        return
    _print_table(names, [tuple(str(group[name]) for name in names) for group in groups])


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = empty_table_with_headings(*(heading.replace("_", " ") for heading in headings))
    for row in rows:
        table.add_row(*map(terminal_safe_line, row))
    make_console().print(table, markup=False)
