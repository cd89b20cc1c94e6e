"""`make demo`: the real server, over stdio, with the real MCP client, on the sample conversation.

Each step prints what it does and checks the answer; an unexpected answer ends the demo with exit code 1. `--ui` ends it
with the page (`make demo UI=1`), which shows the memory until Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import TextContent
from rich.console import Console
from rich.progress import Progress, track
from rich.rule import Rule
from rich.table import Table

from examples.conversation import read_conversation, store_arguments
from madeleine.server.clients.catalogue import server_start_command_line

TIMEOUT_SECONDS = 300.0
"""The first call waits until the embedding model is loaded; a patrol may take long."""
LOG_TAIL_LINES = 15
PIPED_WIDTH = 110

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """The first that is recalled must contain `expected`, and `before` as what was true until then; in fragments, which
    are shuffled, one of them. `misplaced` must not occur: a wish or a rule that has nothing to do with the question."""

    text: str
    format: Literal["fragments", "memories", "prompt"]
    expected: str
    limit: int = 3
    before: str = ""
    misplaced: str = "[PROCEDURAL]"


QUESTIONS = (
    Question("How is Bolota, the sick cat?", "fragments", "Bolota"),
    Question("Is Ines going to take the job in Rotterdam?", "memories", "declined", before="I am going to say yes"),
    Question("What is the Sunday dinner tradition at Avó Lurdes's?", "memories", "Second Sunday of the month"),
    Question("誰が京都で桜を見ようと言った?", "memories", "京都"),
    Question("What did the bakery agree with the flour mill?", "prompt", "Moinho da Pedra agreed"),
)
UNRELATED_QUERY = "the boiling point of tungsten"
KEYWORD = "Rigadoon"
SHOWN_ABOVE = "(above)"
"""In an offer, of a memory whose text another offer of the answer shows."""
MIN_DIARY_LINES = 3
CHANGE = ("Beatriz teaches the cello on Thursdays.", "Beatriz now teaches the cello on Tuesdays.")
CHANGE_QUESTION = "On which day does Beatriz teach the cello?"
SAME_EVENT = ("京都で一緒に桜", "the blossom in Kyoto")
"""Words of two turns that tell of one event, in two languages."""


class UnexpectedAnswer(Exception):
    """An answer that the demo does not expect, in words for the reader."""


def expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise UnexpectedAnswer(otherwise)


class Demo:
    def __init__(self, client: Client, out: Console) -> None:
        self.client = client
        self.out = out

    async def run(self) -> None:
        await self.show_tools()
        stored = await self.store_conversation()
        for question in QUESTIONS:
            await self.recall(question)
        await self.recall_nothing()
        await self.search()
        stored += await self.tell_change()
        report = await self.patrol()
        await self.undo(await self.decide(report))
        await self.show_clusters(stored)
        self.show_how_to_connect()

    async def call(self, tool: str, arguments: Mapping[str, Any], *, bar: Progress | None = None) -> Answer:
        """Call the tool and return its structured answer. `bar` shows its progress notifications."""

        async def advance(progress: float, total: float | None, message: str | None) -> None:
            if bar is not None:
                bar.update(bar.task_ids[0], completed=progress, total=total, description=message or tool)

        result = await self.client.call_tool(tool, dict(arguments), TIMEOUT_SECONDS, advance if bar else None)
        text = " ".join(block.text for block in result.content if isinstance(block, TextContent))
        expect(not result.is_error, f"{tool} answered with an error: {text}")
        expect(isinstance(result.structured_content, dict), f"{tool} answered without structured content: {text[:200]}")
        return dict(result.structured_content or {})

    def heading(self, title: str) -> None:
        self.out.print()
        self.out.print(Rule(title, align="left", style="bold cyan"))

    def print_table(self, rows: list[list[str]], *columns: str) -> None:
        table = Table(*columns, box=None, padding=(0, 2), show_header=bool(columns), header_style="dim")
        for row in rows:
            table.add_row(*row)
        self.out.print(table)

    def print_memories(self, memories: list[Answer]) -> None:
        for memory in memories:
            self.out.print(f"  {str(memory.get('when', ''))[:10]}  {memory['text']}", markup=False)
            if before := memory.get("before"):
                self.out.print(f"              until {memory['since']}, {before}", markup=False, style="dim")

    async def show_tools(self) -> None:
        self.heading("The tools")
        tools = {tool.name: tool.description or "" for tool in (await self.client.list_tools()).tools}
        self.print_table([[name, description.split(". ")[0]] for name, description in tools.items()])
        missing = {"store", "recall", "search_memory", "recall_memory", "run_patrol"} - set(tools)
        expect(not missing, f"the server lacks {', '.join(sorted(missing))}")

    async def store_conversation(self) -> int:
        turns = list(read_conversation())
        self.heading(f"store: a conversation of {len(turns)} turns")
        counts: Counter[str] = Counter()
        ids: dict[str, str] = {}
        began = time.perf_counter()
        for turn in track(turns, "  storing", console=self.out):
            # As an agent tells it that knows what has changed.
            change = {"supersedes": ids[turn["supersedes"]]} if "supersedes" in turn else {}
            answer = await self.call("store", store_arguments(turn) | change)
            ids[turn["when"]] = answer["id"]
            counts[str(answer.get("status"))] += 1
        seconds = time.perf_counter() - began
        summary = ", ".join(f"{count} {status}" for status, count in counts.items())
        self.out.print(f"  {summary} in {seconds:.1f} s, each on disk before it was answered")
        expect(set(counts) <= {"stored", "reinforced"}, f"store answered with another status: {summary}")
        expect(counts["stored"] >= len(turns) * 0.9, f"only {counts['stored']} of {len(turns)} turns were stored")
        return counts["stored"]

    async def recall(self, question: Question) -> None:
        self.heading(f"recall, as {question.format}: {question.text}")
        answer = await self.call("recall", {"query": question.text, "format": question.format, "limit": question.limit})
        recalled = answer.get(question.format)
        if isinstance(recalled, list):
            self.print_memories(recalled)
        else:
            self.out.print(f"  {recalled or ''}", markup=False)
        first = recalled[:1] if isinstance(recalled, list) else str(recalled)
        if question.format == "prompt":
            first = str(recalled).splitlines()[1]
        shown = json.dumps(first, ensure_ascii=False)
        expect(question.expected in shown, f"{question.expected!r} does not come first: {question.text}")
        expect(question.before in shown, f"the change of mind is not told: {question.text}")
        told = json.dumps(answer, ensure_ascii=False)
        expect(question.misplaced not in told, f"a preference that does not belong there: {question.text}")

    async def recall_nothing(self) -> None:
        self.heading(f"recall, of an unrelated query: {UNRELATED_QUERY}")
        memories = (await self.call("recall", {"query": UNRELATED_QUERY, "format": "memories"})).get("memories")
        expect(memories == [], f"{UNRELATED_QUERY!r} should recall nothing")
        self.out.print("  nothing, as expected")

    async def search(self) -> None:
        self.heading(f"search_memory: {KEYWORD}")
        hits = (await self.call("search_memory", {"query": KEYWORD})).get("hits") or []
        for hit in hits:
            self.out.print(f"  {hit.get('when', '')}  {hit.get('text', '')}", markup=False)
        expect(bool(hits), f"no hit for {KEYWORD!r}")
        expect(all(KEYWORD in str(hit.get("text")) for hit in hits), f"a hit without the word {KEYWORD!r}")

    async def tell_change(self) -> int:
        """Store a fact and what became of it. Returns the number of memories."""
        self.heading("store, of what has changed: the answer names what it may take the place of")
        answers = [await self.call("store", {"text": text}) for text in CHANGE]
        for text, answer in zip(CHANGE, answers, strict=True):
            self.out.print(f"  {answer['status']} {answer['id']}: {text}", markup=False)
        named = [str(memory["text"]) for memory in answers[-1].get("may_supersede", [])]
        expect(named == [CHANGE[0]], f"the change was not recognised: {named}")
        self.out.print(f"  may supersede: {named[0]}", markup=False)
        found = (await self.call("recall", {"query": CHANGE_QUESTION, "format": "memories"})).get("memories") or []
        self.heading(f"recall: {CHANGE_QUESTION}")
        self.print_memories(found)
        expect(bool(found) and found[0]["text"] == CHANGE[1], "what is true now does not come first")
        return len(CHANGE)

    async def patrol(self) -> Answer:
        self.heading("run_patrol: cluster new memories, let unused ones fade, revive recalled ones")
        with Progress(console=self.out, transient=True) as bar:
            bar.add_task("patrol", total=None)
            report = await self.call("run_patrol", {"details": True}, bar=bar)
            expect(bar.tasks[0].completed > 0, "the patrol sent no progress")
        steps: list[Answer] = report.get("steps") or []
        expect(bool(report.get("run_id")) and bool(steps), "the patrol's report has no steps")
        waiting = [str(step.get("name")) for step in steps if step.get("skipped")]
        for step in steps:
            counts = ", ".join(
                f"{value} {key.replace('_', ' ')}" for key, value in step.items() if isinstance(value, int)
            )
            if not step.get("skipped"):
                self.out.print(f"  {step.get('step', ''):<3}{step.get('name', ''):<14}{counts}", markup=False)
        self.out.print(f"  for a model to decide: {', '.join(waiting)}", markup=False)
        return report

    async def decide(self, report: Answer) -> list[str]:
        """Take the pending decisions, in place of the agent that calls (ruling 10). Returns the ids of the runs."""
        self.heading("run_patrol, with decisions: without a language model's key the calling agent decides")
        runs: list[str] = []
        pending: list[Answer] = report.get("pending") or []
        expect(bool(pending), "the patrol offered no decision")
        known: dict[str, Answer] = {}  # each memory is shown once
        while pending:
            for offer in pending:
                known |= memories_shown_in(offer)
            decisions = [decision_on(offer, known) for offer in pending]
            answer = await self.call("run_patrol", {"decisions": decisions})
            for offer, decision, outcome in zip(pending, decisions, answer["decided"], strict=True):
                expect("refused" not in outcome, f"a decision was refused: {outcome}")
                subject = offer.get("cluster") or offer.get("when") or "what has changed"
                counts = ", ".join(f"{value} {key}" for key, value in outcome.items() if key != "offer" and value)
                self.out.print(f"  {offer['kind']:<12}{subject}: {counts or 'unchanged'}", markup=False)
                for line in str(decision.get("diary", "")).splitlines():
                    self.out.print(f"  {'':<12}{line}", markup=False)
            runs.append(str(answer["run_id"]))
            pending = answer["pending"]
        return runs

    async def undo(self, runs: list[str]) -> None:
        self.heading("run_patrol, undo: take back what the decisions changed, the latest first")
        for run in reversed(runs):
            undone = (await self.call("run_patrol", {"undo": run}))["undone"]
            self.out.print("  " + ", ".join(f"{kind}: {count}" for kind, count in undone.items()))
            expect(bool(undone), "the undo changed nothing")

    async def show_clusters(self, stored: int) -> None:
        self.heading("recall_memory, without arguments: the clusters")
        clusters: list[Answer] = (await self.call("recall_memory", {})).get("clusters") or []
        clusters.sort(key=lambda cluster: -int(cluster.get("active", 0)))
        statuses = ("active", "dying", "dead")
        self.print_table(
            [
                [str(cluster["name"]), str(cluster["parent"]), *(str(cluster.get(status, 0)) for status in statuses)]
                for cluster in clusters
            ],
            "cluster",
            "parent",
            *statuses,
        )
        living = sum(int(cluster.get("active", 0)) + int(cluster.get("dying", 0)) for cluster in clusters)
        expect(living == stored, f"the clusters hold {living} memories, but {stored} were stored")
        # A root is its own parent (spec P3).
        subclusters = [cluster for cluster in clusters if cluster["parent"] not in (cluster["id"], cluster["name"])]
        expect(bool(subclusters), "the patrol made no sub-cluster")
        self.heading(f"recall_memory, of the cluster {subclusters[0]['name']}")
        memories = (await self.call("recall_memory", {"cluster_id": subclusters[0]["id"]})).get("memories") or []
        self.print_memories(memories)
        expect(bool(memories), f"the cluster {subclusters[0]['name']} is empty")

    def show_how_to_connect(self) -> None:
        command = server_start_command_line()
        entry = {"command": command[0], "args": command[1:]}
        self.heading("Connect a client")
        for client, text in (
            (
                "Claude Desktop (Settings, Developer, Edit Config) and Cursor (~/.cursor/mcp.json)",
                json.dumps({"mcpServers": {"madeleine": entry}}, indent=2),
            ),
            ("Claude Code", f"claude mcp add madeleine -- {shlex.join(command)}"),
            (
                "VS Code (.vscode/mcp.json)",
                json.dumps({"servers": {"madeleine": {"type": "stdio", **entry}}}, indent=2),
            ),
        ):
            self.out.print(f"  [bold]{client}[/bold]")
            # Not wrapped, so that it can be copied.
            self.out.print(text, soft_wrap=True, markup=False)
            self.out.print()


def memories_shown_in(offer: Answer) -> dict[str, Answer]:
    """By id: an offer shows a memory as its text alone where there is nothing else to say, and each text once."""
    told = {id_: {"text": one} if isinstance(one, str) else one for id_, one in offer["memories"].items()}
    return {id_: {"id": id_, **one} for id_, one in told.items() if one["text"] != SHOWN_ABOVE}


def decision_on(offer: Answer, known: dict[str, Answer]) -> Answer:
    """A possible answer of an agent: a diary of the most important moments, a merge of the turns that tell of one
    event, and that what has changed is no longer true. An offer's id alone changes nothing; so is a diary declined of
    a day with too little to tell. `known`: the memories of all offers by id."""
    memories: list[Answer] = [known[id_] for id_ in offer["memories"]]
    decision: Answer = {"offer": offer["offer"]}
    if offer["kind"] == "diary":
        lines = [
            str(memory["text"]) for memory in sorted(memories, key=lambda memory: -float(memory.get("importance", 0)))
        ]
        if len(lines) < MIN_DIARY_LINES:
            return decision
        return decision | {"diary": "\n".join(lines[:3]), "think_md": [f"Ask about this: {line}" for line in lines[:3]]}
    if offer["kind"] == "supersede":
        return decision | {"superseded": True}
    same = [memory["id"] for memory in memories if any(words in str(memory["text"]) for words in SAME_EVENT)]
    return decision | {"merges": [same]} if len(same) > 1 else decision


def variables(folder: Path) -> dict[str, str]:
    return {"MADELEINE_DATA_DIR": str(folder / "data"), "MADELEINE_BEING": "demo"}


async def run_demo(out: Console, folder: Path, log: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "madeleine", "--in-process"], env=variables(folder)
    )
    with log.open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(server, errlog=errors)) as client:
            await Demo(client, out).run()


def show_page(out: Console, folder: Path, options: list[str]) -> None:
    """The page with the demo's memory, until Ctrl-C; then the process that owns the memory ends."""
    out.print(Rule("The page: the memory to look at", align="left", style="bold cyan"))
    madeleine, environment = [sys.executable, "-m", "madeleine"], os.environ | variables(folder)
    try:
        subprocess.run([*madeleine, "ui", *options], env=environment, check=False)
    except KeyboardInterrupt:
        out.print()
    subprocess.run([*madeleine, "stop"], env=environment, check=False, stdout=subprocess.DEVNULL)


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ui", action="store_true", help="end with the page open")
    parser.add_argument("--no-browser", action="store_true", help="with --ui: print its link only")
    arguments = parser.parse_args()
    out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
    began = time.perf_counter()
    failures: list[BaseException] = []
    with tempfile.TemporaryDirectory(prefix="madeleine-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        log = folder / "server.log"
        out.print(f"[bold]Madeleine on stdio, with an empty memory in {folder}[/bold]")
        try:
            asyncio.run(run_demo(out, folder, log))
        except* (UnexpectedAnswer, MCPError, OSError) as group:
            failures = list(leaves(group))
        for failure in failures:
            out.print(f"The demo failed: {failure}", style="bold red", markup=False)
        if failures and log.exists():
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            out.print("\n".join(["The end of the server's log:", *lines[-LOG_TAIL_LINES:]]), style="dim", markup=False)
        if failures:
            return 1
        seconds = time.perf_counter() - began
        out.print(f"[bold green]Done in {seconds:.0f} s.[/bold green]")
        if arguments.ui:
            show_page(out, folder, ["--no-browser"] if arguments.no_browser else [])
        else:
            out.print("To look at this memory in a browser: [bold]make demo UI=1[/bold]")
    out.print(f"The memory in {folder} is removed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
