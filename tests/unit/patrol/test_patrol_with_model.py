"""spec P6 to P8, L3: whole patrols with a language model over the real ledger, whatever it answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.errors import LanguageModelUnavailable, UnusableAnswer
from madeleine.memory.language_model import Prompt
from madeleine.memory.rules.dynamics.importance import (
    effective_importance,
    session_count_if_revived,
    status_from_decayed_importance,
)
from madeleine.patrol.context import PatrolConfig
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.patrol.report import STEP_SKIP_REASON_WITHOUT_MODEL_KEY, PatrolStepName
from tests.contracts.ledger.ledger_values import memory
from tests.doubles import ADA, Clock
from tests.household import MOMENT, Household, ScriptedModel, household, new_store, rows, shown_memories
from tests.rows import for_each_row
from tests.unit.storage.sql.patrols.tidying import soup


def roots(root: str) -> Any:
    return lambda prompt: {"roots": [{"number": n + 1, "root": root} for n in range(len(shown_memories(prompt)))]}


def nothing(prompt: Prompt) -> Any:
    return {"merges": [], "make_dead": [], "keep": []}


async def step(home: Household, name: PatrolStepName, mind: ScriptedModel | None = None) -> dict[str, Any]:
    [report] = (await home.run_patrol(mind, steps=[name])).steps
    return report.as_json()


# --- worked by hand ---------------------------------------------------------------------------------------------


@for_each_row(
    ("importance", "cycles", "effective", "status"),
    [
        (0.5, 0, 0.5, "active"),
        (1.0, 30, 0.36787944, "active"),  # 1/e
        (0.5, 69, 0.05012942, "active"),
        (0.5, 70, 0.04848598, "dying"),
        (1.0, 89, 0.05147461, "active"),
        (1.0, 90, 0.04978707, "dying"),
        (0.05, 0, 0.05, "dying"),  # at 0.05, too
        (0.0501, 0, 0.0501, "active"),
        (0.0, 0, 0.0, "dying"),
    ],
)
def test_effective_importance_falls_as_in_the_table(
    importance: float, cycles: int, effective: float, status: str
) -> None:
    """spec P6 ❸: "eff_imp = importance × exp(−session_count / 30)", "at or below 0.05"."""
    assert effective_importance(importance, cycles) == pytest.approx(effective, abs=1e-8)
    assert status_from_decayed_importance(memory(importance=importance, session_count=cycles)) == status


@for_each_row(
    ("importance", "cycles", "reactivations", "then"),
    [
        (0.5, 70, 0, None),  # nobody recalled it
        (0.5, 70, 1, 35),  # 0.5 × exp(−35 / 30) = 0.1557
        (0.5, 139, 1, None),  # 0.5 × exp(−69.5 / 30) = 0.0493
        (0.5, 138, 1, 69),  # 0.5 × exp(−69 / 30) = 0.0501
        (0.5, 140, 2, 46),  # 0.5 × exp(−46.67 / 30) = 0.1056
        (0.05, 0, 9, None),  # 0.05 is not above 0.05
        (1.0, 89, 1, 44),
    ],
)
def test_the_dead_come_back_as_in_the_table(
    importance: float, cycles: int, reactivations: int, then: int | None
) -> None:
    """spec P6 ❺, ruling 3: "eff_imp > 0.05" at session_count / (1 + reactivations); // on revival."""
    session_count = session_count_if_revived(
        importance=importance, session_count=cycles, reactivation_count=reactivations
    )
    assert session_count == then


# --- ❶ ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["Business", "Private"])
async def test_what_is_like_no_cluster_goes_where_the_small_model_says(home: Household, root: str) -> None:
    """spec P6 ❶.5: "a Haiku LLM call to classify the action as `Business` or `Private`"."""
    [one] = await home.store("We had dinner with the family at home")
    mind = ScriptedModel(classify=roots(root))
    await home.run_patrol(mind, steps=["assign"])
    cluster = (await home.now(one)).cluster_id
    assert rows(home.path, "SELECT name FROM clusters WHERE id = ?", cluster) == [(root,)]
    assert [(prompt.size, prompt.purpose) for prompt in mind.prompts] == [("small", "classify")]


async def test_what_is_like_a_cluster_is_not_asked_about(home: Household) -> None:
    """spec P6 ❶.5: "If a matching cluster exists, assigns the node to it. If not, …"."""
    await home.store(*(soup(n) for n in range(3)))
    await home.run_patrol(steps=["assign"])
    [one] = await home.store(soup(9))
    mind = ScriptedModel(classify=roots("Business"))
    await home.run_patrol(mind, steps=["assign"])
    assert mind.prompts == []
    clusters = {(await home.now(found)).cluster_id for found in await home.all()}
    assert clusters == {(await home.now(one)).cluster_id}


@pytest.mark.parametrize(
    "answer",
    [
        lambda p: LanguageModelUnavailable("mind-1", "it is away"),
        lambda p: UnusableAnswer("mind-1", "no JSON"),
        lambda p: {"roots": [{"number": 7, "root": "Business"}]},
        lambda p: {"root": "Elsewhere"},
    ],
)
async def test_without_a_usable_classification_the_prototypes_decide(home: Household, answer: Any) -> None:
    """spec P6 ❶.5, ruling 5"""
    [one] = await home.store("We had dinner with the family at home")
    report = await step(home, "assign", ScriptedModel(classify=answer))
    assert "failed" not in report
    cluster = (await home.now(one)).cluster_id
    assert rows(home.path, "SELECT name FROM clusters WHERE id = ?", cluster) == [("Private",)]


# --- ❹ ----------------------------------------------------------------------------------------------------------


async def test_only_clusters_with_fresh_or_dying_memories_are_sent_with_all_their_memories(home: Household) -> None:
    """spec P6 ❹: "For each cluster containing `fresh` or `dying` nodes, sends the full node list"."""
    await home.store(*(soup(n) for n in range(4)))
    await home.run_patrol(steps=["assign"])
    mind = ScriptedModel(consolidate=nothing)
    await home.run_patrol(mind, steps=["consolidate"])
    assert [len(shown_memories(prompt)) for prompt in mind.prompts] == [4]
    assert not any(one.fresh for one in await home.all())
    await home.run_patrol(mind, steps=["consolidate"])
    assert mind.asked("consolidate") == 1
    await home.store(soup(9))
    await home.run_patrol(mind, steps=["assign", "consolidate"])
    assert [len(shown_memories(prompt)) for prompt in mind.prompts] == [4, 5]


async def test_an_absorbed_memory_is_not_revived_in_the_same_patrol(home: Household) -> None:
    """ruling 3: "taken literally, ❺ would revive in the same patrol whatever ❹ has just merged away"."""
    soups = await home.store(*(soup(n) for n in range(4)))
    await home.recall(*(one.id for one in soups), times=5)

    def merge(prompt: Prompt) -> Any:
        return {"merges": [{"survivor": 1, "absorbed": [2, 3]}], "make_dead": [], "keep": []}

    await home.run_patrol(ScriptedModel(classify=roots("Private"), consolidate=merge))
    found = await home.all()
    [survivor] = [one for one in found if one.id in {other.absorbed_into for other in found}]
    assert sorted(one.status for one in found) == ["active", "active", "dead", "dead"]
    assert survivor.importance == pytest.approx(0.55)
    assert survivor.reactivation_count == 15


# --- ❻ ----------------------------------------------------------------------------------------------------------


async def test_a_cluster_of_more_than_ten_is_split_under_the_same_root(home: Household) -> None:
    """spec P6 ❻: "New sub-clusters are created with the same `parent_id` as the original"."""
    await home.store(*(soup(n) for n in range(11)))
    await home.run_patrol(steps=["assign"])
    mind = ScriptedModel(split=lambda p: {"parts": [{"name": "Big pots", "memories": [1, 2, 3]}]})
    report = await step(home, "split", mind)
    assert (report["new_clusters"], report["moved"]) == (1, 3)
    parents = {parent for (parent,) in rows(home.path, "SELECT parent_id FROM clusters WHERE NOT is_root")}
    sizes = [n for (n,) in rows(home.path, "SELECT count(*) FROM memories GROUP BY cluster_id ORDER BY 1")]
    assert (len(parents), sizes) == (1, [3, 8])
    assert (await step(home, "split", mind)).get("decided") is None  # 8 are not more than 10


# --- the four answers -------------------------------------------------------------------------------------------


def unusable(prompt: Prompt) -> Any:
    return UnusableAnswer("mind-1", "no JSON")


def away(prompt: Prompt) -> Any:
    return LanguageModelUnavailable("mind-1", "it is away")


def hostile(prompt: Prompt) -> Any:
    match prompt.purpose:
        case "consolidate":
            return {"merges": [{"survivor": 1, "absorbed": [1]}], "make_dead": [1, 2, 99, -1], "keep": []}
        case "split":
            return {"parts": [{"name": "", "memories": list(range(1, 12))}]}
        case "diary":
            return {"diary": "\x00", "think_md": []}
        case "compress":
            return {"summary": ""}
        case _:
            return {"roots": []}


@pytest.mark.parametrize("answer", [unusable, hostile, away])
async def test_an_unusable_answer_changes_nothing_and_its_cost_is_recorded(home: Household, answer: Any) -> None:
    """spec P6 ❹ ❻, P8, L3; O10: whatever becomes of the answer."""
    await home.store(*(soup(n) for n in range(6)), session_id="one")
    await home.store(*(soup(n) for n in range(6, 12)), session_id="two")
    await home.run_patrol(steps=["assign"])
    before = home.told()
    kinds: tuple[PatrolStepName, ...] = ("consolidate", "split", "compress", "diary")
    mind = ScriptedModel(**dict.fromkeys((*kinds, "classify"), answer))
    report = await home.run_patrol(mind, steps=kinds)
    assert home.told() == before
    assert all(step.failed == "" and step.notes for step in report.steps)
    assert {offer.kind for offer in report.pending} == set(kinds)
    costs = rows(home.path, "SELECT purpose, input_tokens, output_tokens, usd FROM cost_records WHERE being_id = 'ada'")
    assert costs == [(prompt.purpose, 90, 10, 0.001) for prompt in mind.prompts]
    assert report.costs.calls == len(mind.prompts) >= 4
    assert report.costs.usd == pytest.approx(0.001 * len(mind.prompts))


async def test_an_unavailable_model_is_not_asked_again_in_that_step(home: Household) -> None:
    for number in range(3):
        await home.store(f"session {number}", session_id=f"s{number}")
        await home.store(f"again {number}", session_id=f"s{number}")
    mind = ScriptedModel(compress=away)
    report = await step(home, "compress", mind)
    assert mind.asked("compress") == 1
    assert "pending until the next patrol" in report["notes"][0]


async def test_what_is_still_to_come_is_not_hidden_behind_the_summary_of_its_session(home: Household) -> None:
    """ADR 100"""
    announced = f"The roof is inspected on {home.clock() + timedelta(days=30):%-d %B %Y}"
    one, two, _ = await home.store("Ann sang", "Ann danced", announced, session_id="one")
    await home.store("Ben slept", session_id="two")
    pending = (await home.run_patrol(steps=["flag"])).pending
    [offer] = [offer for offer in pending if offer.kind == "compress"]
    assert [memory.id for memory in offer.memories] == [one.id, two.id]


# --- bounds -----------------------------------------------------------------------------------------------------


async def bounded(path: Path, templates: Path, config: PatrolConfig) -> tuple[ScriptedModel, list[dict[str, Any]]]:
    """After six sessions, of which three are to be summarised."""
    mind = ScriptedModel(compress=lambda p: {"summary": "A session."}, diary=lambda p: UnusableAnswer("m", "none"))
    async with household(new_store(templates, path / "memory.db"), Clock(), config) as home:
        for number in range(7):
            await home.store(f"Somebody number{number} did thing{number}", session_id=f"s{number}")
        report = await home.run_patrol(mind, steps=["compress", "diary"])
    return mind, [step.as_json() for step in report.steps]


def at_most(prompts: Sequence[Prompt]) -> int:
    """Tokens that are set aside for the dearest of them."""
    return max(len((prompt.system + prompt.text).encode()) // 3 + prompt.max_tokens for prompt in prompts)


async def test_no_call_is_made_when_the_token_budget_is_spent(tmp_path: Path, templates: Path) -> None:
    """What a question may cost at most is set aside before. At 100 tokens an answer, 150 more allow for two."""
    for name in ("unbounded", "bounded", "little"):
        (tmp_path / name).mkdir()
    config = PatrolConfig(token_budget=0, compression_threshold=6)
    mind, _ = await bounded(tmp_path / "unbounded", templates, config)
    budget = at_most([prompt for prompt in mind.prompts if prompt.purpose == "compress"]) + 150
    mind, steps = await bounded(tmp_path / "bounded", templates, replace(config, token_budget=budget))
    assert (mind.asked("compress"), mind.asked("diary")) == (2, 0)
    assert steps[0]["summaries"] == 2
    assert f"1 pending until the next patrol: the budget of {budget:,} tokens" in steps[0]["notes"][0]
    assert f"1 pending until the next patrol: the budget of {budget:,} tokens" in steps[1]["notes"][0]
    mind, steps = await bounded(tmp_path / "little", templates, replace(config, token_budget=1_000))
    assert mind.prompts == []


async def test_a_budget_of_0_is_unlimited(tmp_path: Path, templates: Path) -> None:
    mind, _ = await bounded(tmp_path, templates, PatrolConfig(token_budget=0, compression_threshold=6))
    assert mind.asked("compress") == 3


async def test_a_step_starts_nothing_new_after_its_time_limit(tmp_path: Path, templates: Path) -> None:
    mind, steps = await bounded(tmp_path, templates, PatrolConfig(step_seconds=-1, compression_threshold=6))
    assert mind.prompts == []
    assert "has had its" in steps[0]["notes"][0]


async def test_the_small_model_is_not_asked_when_the_token_budget_is_spent(tmp_path: Path, templates: Path) -> None:
    """spec P6 ❶.5: of 150 memories at fifty a call the first two calls; the prototypes decide the rest."""

    async def sorted_by(name: str, config: PatrolConfig) -> ScriptedModel:
        async with household(new_store(templates, tmp_path / name), Clock(), config) as home:
            await home.store(*(f"thing{n} place{n} colour{n}" for n in range(150)))
            mind = ScriptedModel(classify=roots("Business"))
            await home.run_patrol(mind, steps=["assign"])
            assert None not in {one.cluster_id for one in await home.all()}
            return mind

    unbounded = await sorted_by("unbounded.db", PatrolConfig(token_budget=0))
    assert unbounded.asked("classify") == 3
    bounded = await sorted_by("bounded.db", PatrolConfig(token_budget=at_most(unbounded.prompts[:2]) + 150))
    assert bounded.asked("classify") == 2


# --- P7, P8 -----------------------------------------------------------------------------------------------------


async def test_with_a_key_the_missing_key_is_not_logged(home: Household, caplog: pytest.LogCaptureFixture) -> None:
    """spec P7"""
    await home.store("Ann sang")
    with caplog.at_level(logging.INFO):
        await home.run_patrol(ScriptedModel())
    assert STEP_SKIP_REASON_WITHOUT_MODEL_KEY not in caplog.text


async def test_a_day_has_one_entry_and_the_last_points_stand(home: Household) -> None:
    """spec P8: "upserted into the `diary` table for today's date"; "3–7 bullet-point notes"."""
    texts = iter(["first", "second"])

    def diary(prompt: Prompt) -> Any:
        text = next(texts)
        return {"diary": f"The {text}.\nI slept.\nI rose.", "think_md": ["One.", "Two.", text]}

    mind = ScriptedModel(diary=diary)
    for thing in ("one", "another"):
        home.clock.advance(MOMENT)
        await home.store(f"{thing} thing of the day")
        await home.run_patrol(mind, steps=["diary"])
    assert rows(home.path, "SELECT text FROM diary") == [("The second.\nI slept.\nI rose.",)]
    thoughts = await home.ledger.patrols.memory_reader_for_patrol(ADA).thoughts_for_next_session()
    assert thoughts.points == ("One.", "Two.", "second")
    assert "The first." in mind.prompts[1].text
    again = ScriptedModel(diary=away)
    await home.run_patrol(again, steps=["diary"])
    assert again.prompts == []  # nothing was stored since


async def test_a_diary_is_not_written_over_what_it_was_not_shown(home: Household) -> None:
    """ruling 11: the entry that an offer showed was taken back or forgotten; one written from it would tell it."""
    mind = ScriptedModel(
        diary=lambda p: {"diary": "I sang.\nI slept.\nI rose.", "think_md": ["One.", "Two.", "Three."]}
    )
    await home.store("Ann sang")
    first = await home.run_patrol(mind, steps=["diary"])
    home.clock.advance(MOMENT)
    await home.store("Ann slept")
    [offer] = (await home.run_patrol(steps=["flag"])).pending
    assert offer.earlier == "I sang.\nI slept.\nI rose."
    await home.undo(first.run_id)
    decision = AgentDecision.model_validate(
        {"offer": offer.id, "diary": "I sang.\nI slept.\nI dreamt.", "think_md": ["1", "2", "3"]}
    )
    report = await home.patrol.apply_decisions_and_offer_more(ADA, [decision])
    assert "has changed since" in report.decided[0].refused
    assert rows(home.path, "SELECT * FROM diary") == []


async def test_a_memory_pinned_since_it_was_offered_is_not_summarised(home: Household) -> None:
    """spec L3: pinned memories are not summarised."""
    one, two = await home.store("Ann sang", "Ann danced", session_id="one")
    await home.store("Ben slept", session_id="two")
    pending = (await home.run_patrol(steps=["flag"])).pending
    [offer] = [offer for offer in pending if offer.kind == "compress"]
    assert [memory.id for memory in offer.memories] == [one.id, two.id]
    await home.correct(one.id, pinned=True)
    decision = AgentDecision.model_validate({"offer": offer.id, "summary": "Ann sang."})
    report = await home.patrol.apply_decisions_and_offer_more(ADA, [decision])
    assert "was pinned since" in report.decided[0].refused
    assert not (await home.now(one)).compressed
