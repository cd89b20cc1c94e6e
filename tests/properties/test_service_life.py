"""The whole service against a simple model: whatever its clients call in whatever order, each being finds what it told
as it last told it, once, and nothing of anybody else's (rulings 10, 14 and 25)."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.e2e.http.http_serving import Served, asked, bearer, serving

BEINGS = ("ada", "bob", "cleo")
SUBJECTS = ("cooked lentil soup", "sailed across the lake", "signed the contract in Kyoto")
SEEDS = st.integers(0, 2**20)
WEIGHTS = {
    "store": 5, "supersede": 3, "correct": 3, "forget": 2, "undo": 2, "retract": 2, "send_again": 2, "patrol": 1,
    "reach_for_another": 2, "write_though_only_reading": 2, "restart": 1,
}  # fmt: skip
ACTIONS = [action for action, weight in WEIGHTS.items() for _ in range(weight)]
QUICK, MANY = 3, 6


class Truth(NamedTuple):
    superseded_by: str = ""
    retracted: bool = False

    def __str__(self) -> str:
        return "retracted" if self.retracted else "superseded" if self.superseded_by else "current"


@dataclass
class Fact:
    """What a being believes of one memory. Each text has a word of its own."""

    texts: list[str]
    """The last one holds."""
    truth: Truth = field(default_factory=Truth)

    @property
    def text(self) -> str:
        return self.texts[-1]

    @property
    def current(self) -> bool:
        return self.truth == Truth()


@dataclass
class Believed:
    """Of one being, by id."""

    facts: dict[str, Fact] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    """Words of what was forgotten."""
    calls: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    """Stores with a key, and the id that each was answered with."""
    acts: list[dict[str, tuple[Truth, Truth]]] = field(default_factory=list)
    """What each changed of which memory's truth: before and after."""

    def act(self, after: dict[str, Truth]) -> None:
        self.acts.append({id_: (self.facts[id_].truth, truth) for id_, truth in after.items()})
        for id_, truth in after.items():
            self.facts[id_].truth = truth

    def undo(self, id_: str) -> bool | None:
        """Of the last act that concerned it. False if another has changed the same since; None if there was none, or
        one with a memory that is forgotten by now."""
        for act in reversed(self.acts):
            if id_ in act:
                if not act.keys() <= self.facts.keys():
                    return None
                changed = {one: truths for one, truths in act.items() if truths[0] != truths[1]}
                if any(self.facts[one].truth != after for one, (_, after) in changed.items()):
                    return False
                for one, (before, _) in changed.items():
                    self.facts[one].truth = before
                self.acts.remove(act)
                return True
        return None

    def some(self, chance: Random, *, current: bool = False) -> str | None:
        ids = [id_ for id_, fact in self.facts.items() if fact.current or not current]
        return chance.choice(ids) if ids else None


def word_of(text: str) -> str:
    return text.rsplit(maxsplit=1)[1]


class ServiceLife(RuleBasedStateMachine):
    folder: ClassVar[Path]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory(dir=self.folder)
        self.believed = {being: Believed() for being in BEINGS}
        self.tokens: dict[str, str] = {}
        self.numbers = 0
        self.port = 0
        """The same after a restart: tokens are for an address."""
        self.open()
        for being in BEINGS:
            self.tokens[being] = self.do(self.served.token(being, role="senior"))
            self.tokens[f"reader of {being}"] = self.do(self.served.token(being, read_only=True))

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def open(self) -> None:
        async def enter() -> tuple[Served, httpx.AsyncClient]:
            data_dir = Path(self.directory.name) / "data"
            served = await self.stack.enter_async_context(
                serving(data_dir, http_rate_per_minute=1_000_000, http_port=self.port)
            )
            return served, await self.stack.enter_async_context(served.browser())

        self.stack = AsyncExitStack()
        self.served, self.client = self.do(enter())
        self.port = self.served.settings.http_port

    def teardown(self) -> None:
        self.do(self.stack.aclose())
        self.runner.close()
        self.directory.cleanup()

    def call(self, caller: str, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.do(asked(self.client, tool, arguments, headers=bearer(self.tokens[caller])))
        assert isinstance(result, dict)
        return result

    def answer(self, caller: str, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.call(caller, tool, **arguments)
        assert not result.get("isError"), result
        content = result["structuredContent"]
        assert isinstance(content, dict)
        return content

    def new_text(self, chance: Random) -> str:
        self.numbers += 1
        return f"Somebody {chance.choice(SUBJECTS)} with number{self.numbers}x"

    # --- rules

    @initialize(seed=SEEDS)
    def a_beginning(self, seed: int) -> None:
        for being in BEINGS:
            self.store(being, Random(seed))

    @rule(action=st.sampled_from(ACTIONS), being=st.sampled_from(BEINGS), seed=SEEDS)
    def act(self, action: str, being: str, seed: int) -> None:
        getattr(self, action)(being, Random(seed))

    def store(self, being: str, chance: Random) -> None:
        arguments = {"text": self.new_text(chance), "distinct": True}
        if chance.random() < 0.5:
            arguments["key"] = f"key {self.numbers}"
        id_ = self.answer(being, "store", **arguments)["id"]
        believed = self.believed[being]
        assert id_ not in believed.facts
        believed.facts[id_] = Fact([str(arguments["text"])])
        if "key" in arguments:
            believed.calls.append((arguments, id_))

    def send_again(self, being: str, chance: Random) -> None:
        """The answer got lost, and the client asks once more."""
        believed = self.believed[being]
        if believed.calls:
            number = chance.randrange(len(believed.calls))
            arguments, id_ = believed.calls[number]
            again = self.answer(being, "store", **arguments)["id"]
            if id_ in believed.facts:
                assert again == id_
            else:  # what was forgotten is told anew
                believed.calls[number] = (arguments, again)
                believed.facts[again] = Fact([arguments["text"]])
                believed.gone.remove(word_of(arguments["text"]))

    def supersede(self, being: str, chance: Random) -> None:
        believed = self.believed[being]
        if old := believed.some(chance, current=True):
            text = self.new_text(chance)
            id_ = self.answer(being, "store", text=text, supersedes=old)["id"]
            believed.facts[id_] = Fact([text])
            believed.act({old: Truth(superseded_by=id_), id_: Truth()})

    def correct(self, being: str, chance: Random) -> None:
        believed = self.believed[being]
        if id_ := believed.some(chance, current=True):
            text = self.new_text(chance)
            self.answer(being, "update_memory", id=id_, text=text)
            believed.facts[id_].texts.append(text)

    def retract(self, being: str, chance: Random) -> None:
        believed = self.believed[being]
        if id_ := believed.some(chance, current=True):
            self.answer(being, "update_memory", id=id_, retracted="it was a dream")
            before_it = {one: Truth() for one, fact in believed.facts.items() if fact.truth.superseded_by == id_}
            believed.act(before_it | {id_: Truth(retracted=True)})

    def undo(self, being: str, chance: Random) -> None:
        """Of the last change of a memory's truth."""
        believed = self.believed[being]
        wrong = [id_ for id_, fact in believed.facts.items() if not fact.current]
        if wrong:
            id_ = chance.choice(wrong)
            undone = believed.undo(id_)
            if undone is not None:
                refused = self.call(being, "update_memory", id=id_, undo=True).get("isError", False)
                assert refused is not undone

    def forget(self, being: str, chance: Random) -> None:
        believed = self.believed[being]
        if id_ := believed.some(chance):
            self.answer(being, "forget", ids=[id_])
            forgotten = believed.facts.pop(id_)
            believed.gone += [word_of(text) for text in forgotten.texts]
            for fact in believed.facts.values():
                if fact.truth.superseded_by == id_:
                    fact.truth = Truth(superseded_by=forgotten.truth.superseded_by)

    def patrol(self, being: str, chance: Random) -> None:
        self.answer(being, "run_patrol")

    def reach_for_another(self, being: str, chance: Random) -> None:
        """By its words and by every id: what is another's is as if it were not there."""
        other = chance.choice([name for name in BEINGS if name != being])
        for fact in self.believed[other].facts.values():
            found = self.answer(being, "search_memory", query=word_of(fact.text), include_dead=True)["hits"]
            assert all(word_of(fact.text) not in hit["text"] for hit in found)
        full_ids = [one["provenance"]["full_id"] for one in self.read(other)]
        if full_ids:
            assert not self.answer(being, "recall_memory", ids=full_ids[:10])["memories"]
            assert self.call(being, "update_memory", id=full_ids[0], text="It is mine now")["isError"]
            self.call(being, "forget", ids=full_ids[:10])

    def write_though_only_reading(self, being: str, chance: Random) -> None:
        id_ = self.believed[being].some(chance) or "m1"
        reader = f"reader of {being}"
        for tool, arguments in (
            ("store", {"text": "Let me in"}), ("forget", {"ids": [id_]}), ("update_memory", {"id": id_, "text": "No"}),
            ("run_patrol", {}),
        ):  # fmt: skip
            result = self.do(asked(self.client, tool, arguments, headers=bearer(self.tokens[reader])))
            assert result.get("isError"), result

    def restart(self, being: str, chance: Random) -> None:
        self.do(self.stack.aclose())
        self.open()

    # --- invariants

    def read(self, being: str) -> list[dict[str, Any]]:
        ids = list(self.believed[being].facts)
        if not ids:
            return []
        memories = self.answer(being, "recall_memory", ids=ids[-20:])["memories"]
        assert isinstance(memories, list)
        return memories

    @invariant()
    def what_was_told_is_there_as_it_was_last_told(self) -> None:
        for being, believed in self.believed.items():
            told = dict(list(believed.facts.items())[-20:])
            read = {one["id"]: one for one in self.read(being)}
            assert {id_: one["text"] for id_, one in read.items()} == {id_: fact.text for id_, fact in told.items()}
            for id_, fact in told.items():
                assert read[id_]["truth"] == str(fact.truth), (being, id_, fact)

    @invariant()
    def each_is_found_once_by_its_own_word_and_the_forgotten_never(self) -> None:
        for being, believed in self.believed.items():
            for id_, fact in list(believed.facts.items())[-3:]:
                hits = self.answer(being, "search_memory", query=word_of(fact.text), include_dead=True)["hits"]
                found = [hit["id"] for hit in hits if hit["text"] == fact.text]
                # What no longer holds may be shown as what was before the one that does.
                assert found == [id_] or (found == [] and not fact.current), (hits, fact)
            for word in believed.gone[-2:]:
                hits = self.answer(being, "search_memory", query=word, include_dead=True)["hits"]
                assert not [hit for hit in hits if word in hit["text"]]


@pytest.mark.parametrize(
    ("lives", "steps"), [(QUICK, 8), pytest.param(MANY, 20, marks=pytest.mark.slow)], ids=["quick", "many"]
)
def test_the_service_answers_as_a_simple_model_does(tmp_path: Path, lives: int, steps: int) -> None:
    ServiceLife.folder = tmp_path
    logging.disable(logging.CRITICAL)
    try:
        run_state_machine_as_test(
            ServiceLife,
            settings=settings(
                max_examples=lives,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
                print_blob=False,
            ),
        )
    finally:
        logging.disable(logging.NOTSET)
