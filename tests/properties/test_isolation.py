"""No answer of any tool ever holds anything of another being (spec P1, ruling 12)."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from madeleine.memory.model import BeingId, MemoryId, Scope
from madeleine.memory.rules.ranking.profiles import RankingProfile
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import WordEmbedder

FEW, MANY = 400, 800
BEINGS = ("ada", "bo", "cyd")
WORDS = (
    "lake bread violin winter letter garden mother train Kyoto seven music rain office contract budget deadline".split()
)


class Caller:
    """Random calls for one being. Its own texts hold its mark; ids, cursors and clusters that anybody has seen are
    tried by everybody."""

    def __init__(self, being: str, chance: random.Random, seen: dict[str, list[str]]) -> None:
        self.being = being
        self.mark = f"zz{being}zz"
        self.chance = chance
        self.seen = seen

    def words(self, count: int) -> str:
        return " ".join(self.chance.choices(WORDS, k=count))

    def some(self, kind: str) -> str:
        return self.chance.choice(self.seen[kind] or ["none"])

    def call(self) -> tuple[str, dict[str, Any]]:
        pick: Callable[[], tuple[str, dict[str, Any]]] = self.chance.choices(
            [
                self.store,
                self.observe,
                self.recall,
                self.search,
                self.by_ids,
                self.by_cluster,
                self.clusters,
                self.patrol,
                self.update,
                self.forget,
                self.context,
                self.profile,
                self.ingest,
            ],
            weights=[30, 10, 20, 20, 10, 10, 5, 5, 10, 1, 10, 10, 5],
        )[0]
        return pick()

    def store(self) -> tuple[str, dict[str, Any]]:
        number = self.chance.randrange(10_000)
        arguments: dict[str, Any] = {"text": f"{self.words(5)} {number} {self.mark}", "themes": [self.words(1)]}
        if self.chance.random() < 0.3:
            arguments |= {"feeling": f"{self.words(2)} {self.mark}", "key": f"key {self.chance.randrange(50)}"}
        if self.chance.random() < 0.3:
            arguments |= {"session_id": "shared session", "actors": ["Anna"], "when": "2026-02-03"}
        if self.chance.random() < 0.2:
            arguments |= {"category": "procedural"}
        return "store", arguments

    def context(self) -> tuple[str, dict[str, Any]]:
        arguments: dict[str, Any] = {"message": self.words(3), "session_id": "shared session"}
        return "context", arguments | {"token_limit": self.chance.randrange(1, 2_000)}

    def profile(self) -> tuple[str, dict[str, Any]]:
        """Of the same names as everybody's."""
        kind = self.chance.choice(["soul", "partner_rules", "preferences", "knowledge", "notes"])
        name = {"soul": "voice", "notes": "todo"}.get(kind, self.words(1))
        if self.chance.random() < 0.5:
            return "profile", {"action": "set", "kind": kind, "name": name, "text": f"{self.words(2)} {self.mark}"}
        action = self.chance.choice(["show", "disable"] if kind == "preferences" else ["show", "disable", "remove"])
        return "profile", {"action": action, "kind": kind, "name": name}

    def observe(self) -> tuple[str, dict[str, Any]]:
        message = {"role": "user", "speaker": "Anna", "text": f"{self.words(5)} {self.mark}"}
        return "observe", {"session_id": "shared session", "messages": [message]}

    def ingest(self) -> tuple[str, dict[str, Any]]:
        text = f"{self.words(5)} {self.chance.randrange(10_000)} {self.mark} said Anna"
        return "ingest", {"text": text, "key": f"poured {self.chance.randrange(50)}", "session_id": "shared session"}

    def recall(self) -> tuple[str, dict[str, Any]]:
        query = self.chance.choice([self.words(2), " ".join(f"zz{being}zz" for being in BEINGS)])
        form = self.chance.choice(["fragments", "memories", "prompt"])
        details = self.chance.random() < 0.5
        arguments = {"query": query, "limit": self.chance.randrange(1, 50), "format": form, "details": details}
        return "recall", arguments | {"ranking": self.chance.choice(get_args(RankingProfile))}

    def search(self) -> tuple[str, dict[str, Any]]:
        query = self.chance.choice([self.words(2), "zz", "%", "_", f"zz{self.chance.choice(BEINGS)}zz"])
        arguments: dict[str, Any] = {"query": query, "limit": self.chance.randrange(1, 20)}
        if self.chance.random() < 0.3:
            return "search_memory", arguments | {"mode": "subject"}
        return "search_memory", arguments | ({"cursor": self.some("cursor")} if self.chance.random() < 0.3 else {})

    def by_ids(self) -> tuple[str, dict[str, Any]]:
        return "recall_memory", {"ids": [self.some("memory") for _ in range(5)]}

    def by_cluster(self) -> tuple[str, dict[str, Any]]:
        arguments: dict[str, Any] = {"cluster_id": self.some("cluster"), "limit": 5}
        return "recall_memory", arguments | ({"cursor": self.some("memory")} if self.chance.random() < 0.3 else {})

    def update(self) -> tuple[str, dict[str, Any]]:
        arguments: dict[str, Any] = {"id": self.some("memory"), "importance": self.chance.random()}
        if self.chance.random() < 0.5:
            arguments |= {"text": f"{self.words(4)} {self.chance.randrange(10_000)} {self.mark}"}
        return "update_memory", arguments

    def forget(self) -> tuple[str, dict[str, Any]]:
        return "forget", {"ids": [self.some("memory") for _ in range(3)]}

    def clusters(self) -> tuple[str, dict[str, Any]]:
        return "recall_memory", {}

    def patrol(self) -> tuple[str, dict[str, Any]]:
        return "run_patrol", {"dry_run": self.chance.random() < 0.3}


@pytest.mark.parametrize("calls", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
async def test_random_calls_of_three_beings_never_show_anything_of_another(tmp_path: Path, calls: int) -> None:
    chance = random.Random(20260301)
    seen: dict[str, list[str]] = {"memory": [], "message": [], "cluster": [], "cursor": []}
    owner: dict[str, str] = {}
    full_ids: dict[tuple[str, str], str] = {}
    callers = [Caller(being, chance, seen) for being in BEINGS]
    toolset = Toolset(make_all_tools(chance), max_text_chars=1_000)
    succeeded = 0
    changed: list[str] = []
    erased: list[str] = []
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder()) as memory:
        for _ in range(calls):
            caller = chance.choice(callers)
            name, arguments = caller.call()
            answer = await toolset.call_tool(
                name, arguments, ToolCallContext(Scope(BeingId(caller.being)), memory.use_cases)
            )
            # The words of its own query that a being does not know are named.
            content = {
                key: value
                for key, value in (answer.structured_content or {}).items()
                if key not in ("unknown_words", "notice")
            }
            text = json.dumps(content) + "".join(str(part) for part in answer.content if answer.is_error)
            assert "inside Madeleine" not in text, text
            asked = json.dumps(arguments)
            for other in callers:
                if other is not caller:
                    assert other.mark not in text.replace(asked, ""), (caller.being, name, arguments)
            if answer.is_error:
                continue
            succeeded += 1
            remember(answer.structured_content, caller.being, seen, owner, full_ids)
            if name == "update_memory":
                changed.append(answer.structured_content["id"])
            named = answer.structured_content.get("erased", [])
            erased += [full_ids.get((caller.being, id_), id_) for id_ in named]
        for id_ in owner.keys() - {*seen["cluster"], *seen["message"], *erased}:
            [whole] = (await memory.use_cases.browse.by_ids(Scope(BeingId(owner[id_])), [MemoryId(id_)])).memories
            assert f"zz{owner[id_]}zz" in whole.scene.action  # nobody else has changed or erased it
    assert succeeded > calls * 0.7
    assert all(len(found) > 3 for found in seen.values())
    assert len(changed) > calls // 200
    assert len(erased) > calls // 600


def remember(
    content: dict[str, Any],
    being: str,
    seen: dict[str, list[str]],
    owner: dict[str, str],
    full_ids: dict[tuple[str, str], str],
) -> None:
    """Every full id that is shown belongs to who is shown it, for good; numbers of memories are each being's own."""
    found = [one for name in ("memories", "sources", "hits", "notes") for one in content.get(name, [])]
    shown = [("memory" if _is_memory(one) else "message", one["id"]) for one in found]
    for one in found:
        if _is_memory(one) and (full_id := one.get("provenance", {}).get("full_id")):
            full_ids[being, one["id"]] = full_id
            shown.append(("memory", full_id))
    shown += [("cluster", cluster["id"]) for cluster in content.get("clusters", [])]
    shown += [("memory", content["id"])] if "id" in content else []
    shown += [("memory", chunk["id"]) for chunk in content.get("chunks", []) if "id" in chunk]
    shown += [("memory", id_) for id_ in [*content.get("erased", []), *content.get("related", [])]]
    for kind, id_ in shown:
        if not re.fullmatch(r"m\d+", id_):
            assert owner.setdefault(id_, being) == being, (kind, id_)
        seen[kind].append(id_)
    if cursor := content.get("next_cursor"):
        seen["cursor"].append(cursor)


def _is_memory(one: dict[str, Any]) -> bool:
    """Not a note of the profile, nor a hit from elsewhere."""
    return "type" not in one and one.get("source", "memories") == "memories"
