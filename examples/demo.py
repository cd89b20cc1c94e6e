"""`make demo`: the real server, over stdio, with the real MCP client, on a conversation of five weeks."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import TextContent
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

BEING = "demo"
CALL_TIMEOUT_S = 120.0
"""Generous: the first call waits until the embedding model is loaded."""
PATROL_TIMEOUT_S = 300.0
LOG_TAIL_LINES = 15
PIPED_WIDTH = 110

Answer = dict[str, Any]
Format = Literal["fragments", "memories", "prompt"]


@dataclass(frozen=True, slots=True)
class Question:
    """`tells`: words of which the answer must contain at least one."""

    text: str
    format: Format
    tells: tuple[str, ...]
    limit: int = 3


QUESTIONS = (
    Question("How is Bolota, the sick cat?", "fragments", ("Bolota",)),
    Question("Is Ines going to take the job in Rotterdam?", "memories", ("declined", "turned Rotterdam down"), limit=5),
    Question("What is the Sunday dinner tradition at Avó Lurdes's?", "memories", ("Avó", "Sunday")),
    Question("誰が京都で桜を見ようと言った?", "memories", ("京都",)),
    Question("What did the bakery agree with the flour mill?", "prompt", ("Moinho da Pedra",)),
)
UNRELATED = "the boiling point of tungsten"
KEYWORD = "Rigadoon"
ONE_EVENT = ("京都で一緒に桜", "the blossom in Kyoto")
"""Words of two turns that say the same, in two languages."""


class UnexpectedOutcome(Exception):
    """Something in the demonstration did not come out as it must."""


EXPLAINED = (UnexpectedOutcome, MCPError, OSError)
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Demo:
    client: Client
    out: Console

    async def ask(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_s: float = CALL_TIMEOUT_S,
        progress: ProgressFnT | None = None,
    ) -> Answer:
        result = await self.client.call_tool(tool, dict(arguments), timeout_s, progress)
        text = " ".join(block.text for block in result.content if isinstance(block, TextContent))
        expect(not result.is_error, f"{tool} answered with an error: {text}")
        expect(isinstance(result.structured_content, dict), f"{tool} answered without structured content: {text[:200]}")
        return dict(result.structured_content or {})

    def heading(self, title: str) -> None:
        self.out.print()
        self.out.print(Rule(Text(title, style="bold"), align="left", style="cyan"))

    def say(self, *parts: str | tuple[str, str]) -> None:
        self.out.print(Padding(Text.assemble(*parts), (0, 0, 0, 2)))

    async def run(self) -> None:
        await self.show_tools()
        stored = await self.store_conversation()
        for question in QUESTIONS:
            await self.recall(question)
        await self.recall_the_unrelated()
        await self.search()
        report = await self.patrol()
        await self.undo(await self.decide(report))
        await self.show_clusters(stored)

    async def show_tools(self) -> None:
        self.heading("The tools")
        tools = (await self.client.list_tools()).tools
        table = Table.grid(padding=(0, 2))
        for tool in tools:
            table.add_row(Text(tool.name, style="bold green"), Text(first_sentence(tool.description or "")))
        self.out.print(Padding(table, (0, 0, 0, 2)))
        missing = {"store", "recall", "search_memory", "recall_memory", "run_patrol"} - {tool.name for tool in tools}
        expect(not missing, f"the server lacks {', '.join(sorted(missing))}")

    async def store_conversation(self) -> int:
        turns = list(read_conversation())
        self.heading(f"Storing a conversation: {len(turns)} turns between {' and '.join(speakers(turns))}")
        outcomes: Counter[str] = Counter()
        began = time.perf_counter()
        with Progress(
            TextColumn("  storing"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=self.out
        ) as bar:
            task = bar.add_task("store", total=len(turns))
            for turn in turns:
                answer = await self.ask("store", scene(turn))
                outcomes[str(answer.get("status"))] += 1
                bar.advance(task)
        seconds = time.perf_counter() - began
        told = ", ".join(f"{count} {status}" for status, count in outcomes.items())
        self.say(f"{told}, in {seconds:.1f} s, each one durable on disk before it was answered.")
        expect(set(outcomes) <= {"stored", "reinforced"}, f"store answered with another status: {told}")
        expect(outcomes["stored"] >= len(turns) * 0.9, f"only {outcomes['stored']} of {len(turns)} turns were stored")
        return outcomes["stored"]

    async def recall(self, question: Question) -> None:
        self.heading(f"recall, as {question.format}: {question.text}")
        began = time.perf_counter()
        answer = await self.ask("recall", {"query": question.text, "format": question.format, "limit": question.limit})
        milliseconds = (time.perf_counter() - began) * 1000
        found = answer.get(question.format)
        if isinstance(found, list):
            for memory in sorted(found, key=lambda memory: str(memory.get("when", ""))):
                self.show_memory(memory)
        else:
            self.say(str(found or ""))
        self.say((f"{answer.get('total_tokens', 0)} tokens, {milliseconds:.0f} ms", "dim"))
        expect(bool(found), f"nothing was recalled for {question.text!r}")
        told = json.dumps(found, ensure_ascii=False)
        expect(
            any(word in told for word in question.tells),
            f"what was recalled for {question.text!r} says nothing of {' or '.join(question.tells)}",
        )

    async def recall_the_unrelated(self) -> None:
        self.heading(f"recall, of something that was never spoken of: {UNRELATED}")
        answer = await self.ask("recall", {"query": UNRELATED, "format": "memories"})
        found = answer.get("memories")
        for memory in found or []:
            self.show_memory(memory)
        expect(found == [], f"{UNRELATED!r} should recall nothing")
        self.say("nothing, as it should be")

    async def search(self) -> None:
        self.heading(f"search_memory: {KEYWORD}")
        hits = (await self.ask("search_memory", {"query": KEYWORD})).get("hits") or []
        for hit in hits:
            self.say((f"{str(hit.get('timestamp', ''))[:10]}  ", "cyan"), str(hit.get("snippet", "")))
        expect(bool(hits), f"no hit for {KEYWORD!r}")
        expect(all(KEYWORD in str(hit.get("snippet")) for hit in hits), f"a hit without the word {KEYWORD!r}")

    async def patrol(self) -> Answer:
        self.heading("run_patrol: sorting what is new, fading what is unused, bringing back what was recalled")
        told = 0
        with Progress(
            TextColumn("  {task.description:<16}"), BarColumn(), TimeElapsedColumn(), console=self.out
        ) as bar:
            task = bar.add_task("patrol", total=None)

            async def show(progress: float, total: float | None, message: str | None) -> None:
                nonlocal told
                told += 1
                bar.update(task, completed=progress, total=total, description=message or "patrol")

            report = await self.ask("run_patrol", {}, timeout_s=PATROL_TIMEOUT_S, progress=show)
            bar.update(task, description="done", total=1, completed=1)
        table = Table("step", "", "outcome", box=None, padding=(0, 2), header_style="dim")
        for step in report.get("steps", []):
            rest = {key: value for key, value in step.items() if key not in ("step", "name")}
            table.add_row(
                str(step.get("step", "")),
                str(step.get("name", "")),
                Text(", ".join(f"{k}: {v}" for k, v in rest.items())),
            )
        self.out.print(table)
        pending = report.get("pending") or []
        self.say((f"run {report.get('run_id')}; {told} progress notifications; {len(pending)} decisions wait", "dim"))
        expect(bool(report.get("run_id")) and bool(report.get("steps")), "the patrol's report has no steps")
        expect(told > 0, "the patrol sent no progress")
        return report

    async def decide(self, report: Answer) -> list[str]:
        """Without a key the calling agent does the thinking (ruling 10). Here a few lines of code stand in for it. The
        runs that carried it out."""
        self.heading("run_patrol, with decisions: without a language model's key the calling agent does the thinking")
        runs: list[str] = []
        pending: list[Answer] = report.get("pending") or []
        expect(bool(pending), "nothing was handed out to decide")
        while pending:
            decisions = [decide(offer) for offer in pending]
            answer = await self.ask("run_patrol", {"decisions": decisions}, timeout_s=PATROL_TIMEOUT_S)
            for offer, decision, outcome in zip(pending, decisions, answer["decided"], strict=True):
                self.show_decision(offer, decision, outcome)
            runs.append(str(answer["run_id"]))
            pending = answer["pending"]
        return runs

    def show_decision(self, offer: Answer, decision: Answer, outcome: Answer) -> None:
        expect("refused" not in outcome, f"a decision was refused: {outcome}")
        about = offer.get("cluster") or offer.get("date")
        done = ", ".join(f"{value} {key}" for key, value in outcome.items() if key != "offer" and value)
        self.say((f"{offer['kind']:<12}", "cyan"), f"{about}, {len(offer['memories'])} memories: ", done or "as it is")
        for line in str(decision.get("diary", "")).splitlines():
            self.say((f"{'':<12}{line}", "italic"))
        for merge in decision.get("merges", []):
            for memory in offer["memories"]:
                if memory["id"] in merge:
                    self.say((f"{'':<12}{memory['text']}", "italic"))

    async def undo(self, runs: list[str]) -> None:
        self.heading("run_patrol, undo: what a patrol has changed is put back, the latest first")
        for run in reversed(runs):
            answer = await self.ask("run_patrol", {"undo": run})
            self.say(", ".join(f"{kind}: {count}" for kind, count in answer["undone"].items()))
            expect(bool(answer["undone"]), "the undo put nothing back")

    async def show_clusters(self, stored: int) -> None:
        self.heading("recall_memory, without arguments: the clusters that the patrol found")
        clusters: list[Answer] = (await self.ask("recall_memory", {})).get("clusters") or []
        grown = [cluster for cluster in clusters if not is_root(cluster)]
        table = Table(box=None, padding=(0, 2), header_style="dim")
        for title in ("cluster", "under", "active", "dying", "dead"):
            table.add_column(title, justify="left" if title in ("cluster", "under") else "right")
        for cluster in sorted(clusters, key=lambda cluster: -int(cluster.get("active", 0))):
            above = "" if is_root(cluster) else str(cluster.get("parent"))
            counts = [str(cluster.get(status, 0)) for status in ("active", "dying", "dead")]
            table.add_row(Text(str(cluster.get("name"))), Text(above), *counts)
        self.out.print(table)
        held = sum(int(cluster.get("active", 0)) + int(cluster.get("dying", 0)) for cluster in clusters)
        expect(held == stored, f"the clusters hold {held} memories, and {stored} were stored")
        expect(bool(grown), "the patrol found no cluster of its own")
        await self.show_cluster(max(grown, key=lambda cluster: int(cluster.get("active", 0))))

    async def show_cluster(self, cluster: Answer) -> None:
        self.heading(f"recall_memory, of the cluster {cluster.get('name')}")
        memories = (await self.ask("recall_memory", {"cluster_id": cluster["id"]})).get("memories") or []
        for memory in memories:
            self.show_memory(memory)
        expect(bool(memories), f"the cluster {cluster.get('name')} is empty")

    def show_memory(self, memory: Mapping[str, Any]) -> None:
        line = Text.assemble((f"{str(memory.get('when', ''))[:10]}  ", "cyan"), str(memory.get("text", "")))
        if memory.get("feeling"):
            line.append(f"  ({memory['feeling']})", "italic")
        if "score" in memory:
            line.append(f"  {float(memory['score']):.2f}", "dim")
        self.out.print(Padding(line, (0, 0, 0, 2)))

    def show_how_to_connect(self) -> None:
        command = installed_command()
        entry = {"command": command[0], "args": command[1:]}
        self.heading("Plug this server in")
        self.client_entry(
            "Claude Desktop (Settings, Developer, Edit Config) and Cursor (~/.cursor/mcp.json)",
            json.dumps({"mcpServers": {"madeleine": entry}}, indent=2),
        )
        self.client_entry("Claude Code", f"claude mcp add madeleine -- {shell_words(command)}")
        self.client_entry(
            "VS Code (.vscode/mcp.json)", json.dumps({"servers": {"madeleine": {"type": "stdio", **entry}}}, indent=2)
        )

    def client_entry(self, where: str, text: str) -> None:
        """Unwrapped, so that it can be copied."""
        self.say((where, "bold"))
        self.out.print(Text(text), soft_wrap=True)
        self.out.print()


def decide(offer: Answer) -> Answer:
    """What an agent might answer, as the patrol's guidance says: a diary of the weightiest moments, and the merge of
    memories that tell of one event. An offer's id alone leaves all as it is."""
    memories: list[Answer] = offer["memories"]
    decision: Answer = {"offer": offer["offer"]}
    if offer["kind"] == "diary":
        lines = [str(memory["text"]) for memory in sorted(memories, key=lambda memory: -float(memory["importance"]))]
        return decision | {"diary": "\n".join(lines[:3]), "think_md": [f"Ask about this: {line}" for line in lines[:3]]}
    same = [memory["id"] for memory in memories if any(words in str(memory["text"]) for words in ONE_EVENT)]
    return decision | {"merges": [same]} if len(same) > 1 else decision


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise UnexpectedOutcome(otherwise)


def read_conversation() -> Iterator[Answer]:
    text = Path(__file__).with_name("conversation.jsonl").read_text(encoding="utf-8")
    for line in text.splitlines():
        yield json.loads(line)


def speakers(turns: list[Answer]) -> list[str]:
    return list(dict.fromkeys(turn["speaker"] for turn in turns))


def scene(turn: Mapping[str, Any]) -> Answer:
    """The arguments of `store`. The speaker's name is in the text: recall by meaning needs to know who speaks."""
    same = ("when", "setting", "feeling", "category", "importance", "emotions", "themes")
    return {
        "text": f"{turn['speaker']}: {turn['text']}",
        "actors": [turn["speaker"]],
        "session_id": turn["session"],
        **{name: turn[name] for name in same if name in turn},
    }


def is_root(cluster: Answer) -> bool:
    """A root is its own parent (spec P3)."""
    return cluster.get("parent") in (cluster["id"], cluster.get("name"))


def first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ")[0].rstrip(".") + "."


def installed_command() -> list[str]:
    """The command of this very installation, absolute: clients start servers without the shell's PATH."""
    name = "madeleine.exe" if sys.platform == "win32" else "madeleine"
    script = Path(sys.executable).with_name(name)
    return [str(script)] if script.exists() else [sys.executable, "-m", "madeleine"]


def shell_words(command: list[str]) -> str:
    return " ".join(f'"{word}"' if " " in word else word for word in command)


@contextmanager
def temporary_memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="madeleine-demo-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


async def demonstrate(out: Console, folder: Path, log: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "madeleine", "--in-process"],
        env={"MADELEINE_DATA_DIR": str(folder / "data"), "MADELEINE_BEING": BEING},
    )
    with log.open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(server, errlog=errors)) as client:
            demo = Demo(client, out)
            await demo.run()
            demo.show_how_to_connect()


def main() -> int:
    out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
    began = time.perf_counter()
    with temporary_memory() as folder:
        out.print(Text(f"Madeleine on stdio, with an empty memory in {folder}", style="bold"))
        log = folder / "server.log"
        try:
            failures = failures_of(folder, log, out)
        except KeyboardInterrupt:
            out.print("stopped")
            return EXIT_INTERRUPTED
        if failures:
            for failure in failures:
                out.print(Text(f"The demonstration failed: {failure}", style="bold red"))
            show_log(out, log)
            return 1
    out.print(
        Text(
            f"Done in {time.perf_counter() - began:.0f} s: {sum(1 for _ in read_conversation())} turns stored, "
            f"{len(QUESTIONS)} questions answered from memory, one rightly left without an answer, a search, a patrol, "
            f"its decisions and their undoing. "
            f"The memory was in {folder} and is removed; the server has stopped.",
            style="bold green",
        )
    )
    return 0


def failures_of(folder: Path, log: Path, out: Console) -> list[BaseException]:
    """Run the demonstration; what went wrong, of the kinds that a sentence explains."""
    try:
        asyncio.run(demonstrate(out, folder, log))
    except EXPLAINED as error:
        return [error]
    except BaseExceptionGroup as group:
        explained, rest = group.split(EXPLAINED)
        if rest is not None or explained is None:
            raise
        return list(flat(explained))
    return []


def flat(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from flat(error)
        else:
            yield error


def show_log(out: Console, log: Path) -> None:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    if lines:
        out.print(Text("The server's last words:", style="dim"))
        out.print(Text("\n".join(lines[-LOG_TAIL_LINES:]), style="dim"))


if __name__ == "__main__":
    sys.exit(main())
