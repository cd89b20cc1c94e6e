"""Whatever a being and its patrols do in whatever order, nothing is lost, nothing is torn, and what was forgotten stays
so (spec P1, P3, P6; rulings 3, 10, 11, 20, 23 and 26)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from madeleine.memory.errors import CannotUndo, StorageError
from madeleine.memory.model import MemoryId, RunId, Scope
from madeleine.patrol.context import PatrolConfig
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.patrol.deciding.requests import DecisionRequest
from madeleine.patrol.report import PATROL_STEPS, PatrolReport, PatrolStepName
from tests.doubles import ADA, BOB, Clock
from tests.household import Household, all_texts, household, kept_rows, new_store
from tests.properties.random_mind import decision_on, random_model

SUBJECTS = (
    "Ann cooked lentil soup with carrots and garlic",
    "Ben sailed across the windy lake in the morning",
    "Carl signed the contract with the customer in Kyoto",
)
IMPORTANCES = (0.0501, 0.051, 0.06, 0.5, 0.99, 1.0)
"""The first three fade within a few cycles."""
SESSIONS = ("one", "two", "three")
SCOPES = st.sampled_from([ADA, ADA, ADA, BOB])
SEEDS = st.integers(0, 2**20)
WEIGHTS = {
    "patrol": 6, "forget": 4, "undo": 4, "decide": 3, "store": 3, "patrol_and_undo_it": 2, "recall": 2, "correct": 2,
    "store_again": 1, "note": 1, "time_passes": 1, "rehearse": 1, "die_in_a_patrol": 1, "something_goes_wrong": 1,
    "decline": 1,
}  # fmt: skip
ACTIONS = [action for action, weight in WEIGHTS.items() for _ in range(weight)]
QUICK, MANY = 12, int(os.environ.get("LIVES", "120"))
"""Lives that are lived; `LIVES` sets another number for a long run."""
DECIDED: tuple[PatrolStepName, ...] = ("consolidate", "split", "supersede", "repair")
MAX_BRIEF_BYTES = 9_500
"""Some 3,000 tokens (ruling 23)."""


class Life(RuleBasedStateMachine):
    templates: ClassVar[Path]
    config: ClassVar[PatrolConfig] = PatrolConfig(compression_threshold=1, undoable_runs=8)

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.clock = Clock()
        self.numbers = 0
        self.said: list[tuple[str, str, MemoryId]] = []
        """Of each acknowledged text its being and whose it is; the text of a note is its own, until it is read."""
        self.noted: list[tuple[str, str]] = []
        self.gone: list[str] = []
        """Words of texts that were forgotten; each text has one of its own."""
        self.offers: list[DecisionRequest] = []
        self.runs: list[tuple[Scope, RunId]] = []
        self.path = new_store(self.templates, Path(self.directory.name) / "memory.db")
        self.reader = sqlite3.connect(self.path, isolation_level=None)
        self.open()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def open(self) -> None:
        self.context = household(self.path, self.clock, self.config, durable=False)
        self.home: Household = self.do(self.context.__aenter__())

    def close(self) -> None:
        self.do(self.context.__aexit__(None, None, None))

    def teardown(self) -> None:
        self.reader.close()
        self.close()
        self.runner.close()
        self.directory.cleanup()

    # --- what is there

    def rows(self, statement: str, *binds: Any) -> list[tuple[Any, ...]]:
        return list(self.reader.execute(statement, binds))

    def told(self) -> dict[str, list[tuple[Any, ...]]]:
        return kept_rows(self.reader)

    def ids(self, scope: Scope) -> list[MemoryId]:
        stored_rows = self.rows("SELECT id FROM memories WHERE being_id = ? ORDER BY seq", scope.being_id)
        return [MemoryId(id_) for (id_,) in stored_rows]

    def some(self, scope: Scope, chance: Random, most: int) -> list[MemoryId]:
        """Often of those that something was made of."""
        ids = self.ids(scope)
        tied = [MemoryId(id_) for (id_,) in self.rows(_TIED, scope.being_id)]
        ids = tied if tied and chance.random() < 0.6 else ids
        return chance.sample(ids, min(len(ids), chance.randint(1, most)))

    def new_text(self, subject: int) -> str:
        self.numbers += 1
        return f"{SUBJECTS[subject]}, word{self.numbers}w"

    def remember(self, scope: Scope, text: str, id_: MemoryId) -> None:
        self.said.append((scope.being_id, text, id_))

    # --- rules

    @initialize(
        subject=st.integers(0, 2),
        many=st.sampled_from([3, 6, 12]),
        importance=st.sampled_from(IMPORTANCES),
        night=st.sampled_from(["none", "without a mind", "with one", "with one"]),
        seed=SEEDS,
    )
    def a_history(self, subject: int, many: int, importance: float, night: str, seed: int) -> None:
        for session in SESSIONS:
            texts = [self.new_text(subject) for _ in range(many // 3 + 1)]
            for id_, text in self._store(ADA, texts, importance=importance, session_id=session):
                self.remember(ADA, text, id_)
        if night != "none":
            report = self.do(self.home.run_patrol(random_model(Random(seed)) if night == "with one" else None))
            self.offers += report.pending
            self.runs.append((ADA, report.run_id))

    def _store(self, scope: Scope, texts: Sequence[str], **fields: Any) -> list[tuple[MemoryId, str]]:
        stored = self.do(self.home.stored(*texts, scope=scope, **fields))
        return [(one.memory.id, text) for one, text in zip(stored, texts, strict=True)]

    @rule(action=st.sampled_from(ACTIONS), scope=SCOPES, seed=SEEDS)
    def act(self, action: str, scope: Scope, seed: int) -> None:
        getattr(self, action)(scope, Random(seed))

    def store(self, scope: Scope, chance: Random) -> None:
        importance = chance.choice(IMPORTANCES)
        fields = {
            "importance": importance,
            "pinned": importance > 0.9 and chance.random() < 0.5,
            "session_id": chance.choice(["", *SESSIONS]),
        }
        for id_, text in self._store(scope, [self.new_text(chance.randrange(3))], **fields):
            self.remember(scope, text, id_)

    def store_again(self, scope: Scope, chance: Random) -> None:
        known = sorted({text for being, text, _ in self.said if being == scope.being_id})
        if known:
            for id_, text in self._store(scope, [chance.choice(known)], importance=0.7):
                self.remember(scope, text, id_)

    def note(self, scope: Scope, chance: Random) -> None:
        text = self.new_text(chance.randrange(3))
        scene = {"action": text, "when": [{"date": "2026-02-01", "action": f"dated {text}"}, "2026-02-02"]}
        self.do(self.home.note(scene if chance.random() < 0.8 else f'{{"action": "{text}', scope))
        self.noted.append((scope.being_id, text))

    def recall(self, scope: Scope, chance: Random) -> None:
        times = chance.choice([1, 2, 30])
        self.do(self.home.recall(*self.some(scope, chance, 5), scope=scope, times=times))

    def correct(self, scope: Scope, chance: Random) -> None:
        for id_ in self.some(scope, chance, 1):
            text = self.new_text(chance.randrange(3)) if chance.random() < 0.5 else None
            pinned = chance.choice([None, True, False])
            importance = chance.choice([None, *IMPORTANCES])
            self.do(self.home.correct(id_, scope, text=text, pinned=pinned, importance=importance))
            if text:
                self.remember(scope, text, id_)

    def forget(self, scope: Scope, chance: Random) -> None:
        ids = self.some(scope, chance, 2)
        noted = [text for (text,) in self.rows(_NOTES_OF, json.dumps(ids))]
        erased = self.do(self.home.ledger.erasure.forget(scope, ids, at=self.clock()))
        assert set(ids) <= set(erased.erased_ids)
        ids = list(erased.erased_ids)  # summaries that quote them, too
        left = [one for one in self.said if one[2] not in ids]
        words = {_word(text) for _, text, id_ in self.said if id_ in ids}
        words |= {_word(text) for _, text in self.noted if any(text in note for note in noted)}
        # The same text may have been told to two of them.
        self.gone += sorted(words - {_word(text) for _, text, _ in left})
        self.said = left
        self.noted = [one for one in self.noted if not any(one[1] in note for note in noted)]

    def patrol(self, scope: Scope, chance: Random) -> None:
        report = self._patrol(scope, chance)
        assert [step.failed for step in report.steps] == [""] * len(report.steps)

    def rehearse(self, scope: Scope, chance: Random) -> None:
        before = self.told()
        self._patrol(scope, chance, dry_run=True)
        assert self.told() == before

    def _patrol(self, scope: Scope, chance: Random, **fields: Any) -> PatrolReport:
        steps = PATROL_STEPS if chance.random() < 0.8 else chance.sample(PATROL_STEPS, 3)
        mind = random_model(chance) if chance.random() < 0.7 else None
        report: PatrolReport = self.do(self.home.run_patrol(mind, scope=scope, steps=steps, **fields))
        self.offers += report.pending
        if not report.dry_run:
            self.runs.append((scope, report.run_id))
        return report

    def time_passes(self, scope: Scope, chance: Random) -> None:
        for _ in range(chance.randint(1, 4)):
            report = self.do(self.home.run_patrol(scope=scope, steps=["age", "flag"], offer_pending=False))
            self.runs.append((scope, report.run_id))

    def decide(self, scope: Scope, chance: Random) -> None:
        """On offers of any age, of either being."""
        strangers = self.ids(BOB if scope is ADA else ADA)
        recent = self.offers[-4:] + chance.sample(self.offers, min(2, len(self.offers)))
        decisions = [decision_on(chance, offer, strangers) for offer in recent]
        report: PatrolReport = self.do(self.home.patrol.apply_decisions_and_offer_more(scope, decisions))
        self.offers += report.pending
        if decisions:
            self.runs.append((scope, report.run_id))

    def decline(self, scope: Scope, chance: Random) -> None:
        """What was declined comes back only after a change (ruling 20)."""
        offered = self.do(self.home.run_patrol(scope=scope, steps=DECIDED))
        declined = [offer for offer in offered.pending if offer.kind in DECIDED]
        dying = {offer.id: [memory.id for memory in offer.memories if memory.status == "dying"] for offer in declined}
        decisions = [AgentDecision(offer=id_, keep=ids) for id_, ids in dying.items()]
        decided: PatrolReport = self.do(self.home.patrol.apply_decisions_and_offer_more(scope, decisions))
        assert [result.refused for result in decided.decided] == [""] * len(declined)
        again = self.do(self.home.run_patrol(scope=scope, steps=DECIDED))
        self.runs += [(scope, report.run_id) for report in (offered, decided, again)]
        subjects = {self.subject(offer) for offer in declined}
        for report in (decided, again):
            assert subjects.isdisjoint(self.subject(offer) for offer in report.pending)
            assert len(json.dumps(report.as_json_without_empty_steps()).encode()) < MAX_BRIEF_BYTES

    @staticmethod
    def subject(offer: DecisionRequest) -> tuple[str, frozenset[MemoryId]]:
        return offer.topic_key, frozenset(memory.id for memory in offer.memories)

    def patrol_and_undo_it(self, scope: Scope, chance: Random) -> None:
        before = self.told()
        report = self._patrol(scope, chance)
        self.do(self.home.undo(report.run_id, scope))
        assert self.told() == before

    def undo(self, scope: Scope, chance: Random) -> None:
        if not self.runs:
            return
        scope, run = self.runs[-1] if chance.random() < 0.6 else chance.choice(self.runs)
        if chance.random() < 0.1:
            scope, run = (BOB if scope is ADA else ADA), chance.choice([run, RunId("nobody")])
        before = self.told()
        try:
            self.do(self.home.undo(run, scope))
        except CannotUndo:
            assert self.told() == before

    def die_in_a_patrol(self, scope: Scope, chance: Random) -> None:
        before = self.told()
        self.home.mortal.left = chance.randint(0, 14)
        died = True
        try:
            self._patrol(scope, chance)
            died = False
        except StorageError:
            pass
        self.close()
        self.open()
        assert self.do(self.home.patrol.roll_back_unfinished_runs()) == died
        assert self.rows("SELECT 1 FROM patrol_runs WHERE state = 'running'") == []
        if died:
            assert self.told() == before

    def something_goes_wrong(self, scope: Scope, chance: Random) -> None:
        """The caller goes away, or a library breaks."""
        before = self.told()
        self.home.mortal.left = chance.randint(0, 12)
        self.home.mortal.raises = chance.choice([asyncio.CancelledError(), RuntimeError("the library broke")])
        try:
            self._patrol(scope, chance)
        except (asyncio.CancelledError, RuntimeError):
            assert self.told() == before
        self.home.mortal.left = self.home.mortal.raises = None

    # --- what always holds

    @invariant()
    def nothing_is_torn(self) -> None:
        for what, statement in TORN.items():
            assert self.rows(statement) == [], what

    @invariant()
    def nobody_is_absorbed_in_a_ring(self) -> None:
        into = dict(self.rows("SELECT id, absorbed_into FROM memories WHERE absorbed_into IS NOT NULL"))
        for id_ in into:
            seen, at = set(), id_
            while at in into:
                assert at not in seen
                seen.add(at)
                at = into[at]

    @invariant()
    def all_that_was_said_is_still_told(self) -> None:
        corpus = {being: "\n".join(text for one, text in self.rows(_TOLD) if one == being) for being in ("ada", "bob")}
        for being, text, _ in self.said:
            assert text in corpus[being]
        for being, text in self.noted:
            assert text in corpus[being]

    @invariant()
    def what_was_forgotten_is_told_nowhere(self) -> None:
        if self.gone:
            found = all_texts(self.reader)
            for word in self.gone:
                assert word not in found


def _word(text: str) -> str:
    """The one that no other text has."""
    return text.rsplit(" ", 1)[1]


_TIED = """
    SELECT id FROM memories WHERE being_id = ? AND (absorbed_into IS NOT NULL OR compressed OR compression_source
        OR when_ LIKE '%{%' OR id IN (SELECT value FROM diary, json_each(sources)))
    ORDER BY seq
"""
_NOTES_OF = "SELECT content FROM notes WHERE memory_id IN (SELECT value FROM json_each(?))"
_TOLD = """
    SELECT being_id, action || ' ' || when_ FROM memories UNION ALL SELECT being_id, text FROM reinforcements
    UNION ALL SELECT being_id, coalesce(text, '') FROM revisions UNION ALL SELECT being_id, content FROM notes
"""
_M = "SELECT m.id FROM memories m"
TORN = {
    "a memory is of a being": f"{_M} WHERE m.being_id NOT IN ('ada', 'bob')",
    "no two memories share an id": "SELECT id FROM memories GROUP BY id HAVING count(*) > 1",
    "a cluster's parent is a root of the same being, a root is its own": """
        SELECT c.id FROM clusters c LEFT JOIN clusters p ON p.id = c.parent_id AND p.being_id = c.being_id
        WHERE p.id IS NULL OR NOT p.is_root OR p.parent_id != p.id OR (c.is_root AND c.parent_id != c.id)""",
    "a memory's cluster exists and is its being's": f"""{_M} LEFT JOIN clusters c
        ON c.id = m.cluster_id AND c.being_id = m.being_id WHERE m.cluster_id IS NOT NULL AND c.id IS NULL""",
    "a being has one root of a name": """
        SELECT name FROM clusters WHERE is_root GROUP BY being_id, name HAVING count(*) > 1""",
    "a survivor exists and is the same being's": f"""{_M} LEFT JOIN memories s
        ON s.id = m.absorbed_into AND s.being_id = m.being_id WHERE m.absorbed_into IS NOT NULL AND s.id IS NULL""",
    "what is absorbed is dead": f"{_M} WHERE m.absorbed_into IS NOT NULL AND m.status != 'dead'",
    "a summary exists": f"""{_M} LEFT JOIN memories s ON s.id = m.compressed_into AND s.being_id = m.being_id
        AND s.compression_source WHERE m.compressed AND s.id IS NULL""",
    "what has a summary is compressed, unless it is a passage beside it": f"""{_M}
        WHERE m.compressed_into IS NOT NULL AND NOT m.compressed AND NOT m.compression_source""",
    "importance is in [0, 1] and counts are not negative": f"""{_M} LEFT JOIN beings b ON b.being_id = m.being_id
        WHERE m.importance NOT BETWEEN 0 AND 1 OR m.reactivation_count < 0 OR m.access_count < 0
        OR coalesce(m.stopped_at, b.cycle, 0) - m.since < 0""",
    "only who sleeps has stopped": f"{_M} WHERE (m.status = 'active') != (m.stopped_at IS NULL)",
    "status": f"{_M} WHERE m.status NOT IN ('active', 'dying', 'dead')",
    "no patrol runs": "SELECT id FROM patrol_runs WHERE state = 'running'",
    "what was undone is not journalled": """SELECT j.seq FROM patrol_changes j JOIN patrol_runs r ON r.id = j.run_id
        WHERE r.state NOT IN ('finished', 'running', 'pruned')""",
}  # fmt: skip
"""Rows that there must not be."""


@pytest.mark.parametrize(
    ("lives", "steps"), [(QUICK, 10), pytest.param(MANY, 6, marks=pytest.mark.slow)], ids=["quick", "many"]
)
def test_in_any_life_nothing_is_lost_or_torn_and_the_forgotten_stays_forgotten(lives: int, steps: int) -> None:
    logging.disable(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory() as templates:
            Life.templates = Path(templates)
            run_state_machine_as_test(
                Life,
                settings=settings(
                    max_examples=lives,
                    stateful_step_count=steps,
                    deadline=None,
                    database=None,
                    derandomize=True,
                    phases=[Phase.explicit, Phase.generate, Phase.shrink],
                    suppress_health_check=list(HealthCheck),
                    print_blob=False,
                ),
            )
    finally:
        logging.disable(logging.NOTSET)
