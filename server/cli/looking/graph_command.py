"""`madeleine graph`: the entity graph (spec O14), asked of the host by the tool of an agent. Nothing counts as
recalled."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server.cli.output import empty_table_with_headings, make_console, open_tool_client, print_json
from madeleine.server.settings.settings import Settings


async def graph_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Raises `HostRefused`, and the error that the tool answers with."""
    names = ("entity", "hops", "as_of", "limit")
    asked = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    async with open_tool_client(settings, "related", command="madeleine graph", lost_hint="Ask again.") as call:
        answer = await call("related", asked)
    if arguments.json:
        print_json(answer)
        return
    if "entity" in answer:
        print_related_entities(answer)
    elif answer["entities"]:
        print_table_if_any_rows("", ("entity", "kind", "memories"), map(_entity_row, answer["entities"]))
    elif not arguments.entity:
        print("No memory names anything yet.")
    if notice := answer.get("notice"):
        print(terminal_safe_line(notice))


def print_related_entities(answer: Mapping[str, Any]) -> None:
    entity = answer["entity"]
    memories = "memory" if entity["memories"] == 1 else "memories"
    print(terminal_safe_line(f"{entity['name']} ({entity['kind']}), named by {entity['memories']} {memories}"))
    relations = (
        (one["subject"], one["relation"], one["object"], _relation_period_text(one), one["memory"])
        for one in answer.get("relations", ())
    )
    print_table_if_any_rows("Relations", ("subject", "relation", "object", "since", "memory"), relations)
    neighbours = (
        (one["name"], one["kind"], one.get("via", ""), ", ".join(one["memories"]))
        for one in answer.get("neighbours", ())
    )
    print_table_if_any_rows("Named together with", ("entity", "kind", "through", "memories"), neighbours)
    timeline = ((one["when"], one["id"], one["text"], one.get("status", "")) for one in answer.get("timeline", ()))
    print_table_if_any_rows("Timeline", ("when", "id", "text", "state"), timeline)
    print_table_if_any_rows(
        "Of a similar name", ("entity", "kind", "memories"), map(_entity_row, answer.get("entities", ()))
    )


def _relation_period_text(relation: Mapping[str, Any]) -> str:
    since, until = relation.get("since", ""), relation.get("until", "")
    return f"{since} to {until}" if until else since


def _entity_row(entity: Mapping[str, Any]) -> Sequence[object]:
    return entity["name"], entity["kind"], entity["memories"]


def print_table_if_any_rows(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Nothing where there are none."""
    table = empty_table_with_headings(*headings)
    for row in rows:
        table.add_row(*(terminal_safe_line(cell) for cell in row))
    if table.row_count:
        if title:
            print(f"\n{title}")
        make_console().print(table)
