"""`madeleine why`: why memories come to a query, or do not. The host is asked as by a client that may only read, so
that nothing counts as recalled; of a server over HTTP the token says whether it counts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from madeleine.memory.recall.explaining import MAX_EXPLAINED_CANDIDATES
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server.cli.output import empty_table_with_headings, make_console, open_tool_client, print_json
from madeleine.server.settings.settings import Settings

MAX_EXPLANATION_TABLE_TEXT_CHARS = 48


async def why_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Raises `HostRefused`, and the error that the tool answers with."""
    asked = {"query": arguments.query, "format": "memories", "explain": arguments.id or True}
    asked |= {"limit": arguments.limit} if arguments.limit else {}
    async with open_tool_client(
        settings, "recall", command="madeleine why", lost_hint="Ask again.", read_only=True
    ) as call:
        answer = await call("recall", asked)
    explanation = answer["explain"]
    if arguments.json:
        print_json(explanation | {"unknown_words": answer.get("unknown_words", [])})
    elif arguments.id:
        print("\n".join(memory_explanation_lines(explanation["memories"][-1], explanation["ranking"])))
    elif explanation["memories"]:
        make_console().print(table_of_explanations(explanation["memories"][:MAX_EXPLAINED_CANDIDATES]))
        for sentence in closing_sentences_of_explanation(answer):
            print(terminal_safe_line(sentence))
    else:
        print("Nothing is stored that shares a word or a meaning with this.")


def closing_sentences_of_explanation(answer: Mapping[str, Any]) -> Iterator[str]:
    if words := answer.get("unknown_words"):
        yield f"No memory holds: {', '.join(words)}."
    if notice := answer.get("notice"):
        yield str(notice)
    yield "`madeleine why QUERY ID` says more of one memory, also of one that is not in the table."


def table_of_explanations(memories: list[Mapping[str, Any]]) -> Table:
    """The score of each with its parts, or what keeps it away."""
    headings = ("id", "score", "outcome", "parts of the score, or of the likeness", "text")
    table = empty_table_with_headings(*headings, no_wrap=("id", "score"))
    for memory in memories:
        likeness = memory.get("likeness", {})
        of_likeness = f"{score_parts_as_text(likeness)} (needed {likeness['needed']:.2f})" if likeness else ""
        table.add_row(
            terminal_safe_line(memory["id"]),
            f"{memory['score']:.4f}" if "score" in memory else "",
            memory["outcome"],
            score_parts_as_text(memory["parts"]) if "parts" in memory else of_likeness,
            terminal_safe_line(memory.get("text", ""))[:MAX_EXPLANATION_TABLE_TEXT_CHARS],
        )
    return table


def memory_explanation_lines(memory: Mapping[str, Any], ranking: str) -> Iterator[str]:
    yield terminal_safe_line(f"{memory['id']}: {memory['outcome']}. {memory.get('reason', '')}").rstrip()
    if text := memory.get("text"):
        yield f"  text      {terminal_safe_line(text)}"
    if likeness := memory.get("likeness"):
        yield f"  likeness  {likeness['sum']:.4f} = {score_parts_as_text(likeness)}; needed: {likeness['needed']:.2f}"
    if "score" in memory:
        yield f"  score     {memory['score']:.4f} = {score_parts_as_text(memory['parts'])} ({ranking})"
    if "rank" in memory:
        yield f"  rank      {memory['rank']}"


def score_parts_as_text(parts: Mapping[str, float]) -> str:
    """The greatest first: "0.3012 meaning + 0.1100 words"."""
    named = {name: part for name, part in parts.items() if name not in ("sum", "needed")}
    ordered = sorted(named.items(), key=lambda part: -abs(part[1]))
    text = " + ".join(f"{part:.4f} {name.replace('_', ' ')}" for name, part in ordered)
    return text.replace("+ -", "− ") or "0"
