"""What is still to come, by the tools alone (ruling 14): a day that is moved, and what is true only from a day on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest

from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.open_memory import OpenedMemoryStore
from tests.doubles import ADA
from tests.unit.tools.conftest import Use, recalled

DENTIST = "When is Leni's dentist appointment?"


def day(days: int) -> date:
    return utc_now().date() + timedelta(days=days)


def written(at: date) -> str:
    return f"{at:%A}, {at.day} {at:%B %Y}"


def appointment(at: date) -> str:
    return f"Leni's dentist appointment is on {written(at)}, at 15:30."


def moved_to(at: date) -> str:
    return f"Leni's dentist appointment was moved to {written(at)}, at 9:15."


async def begun(use: Use, *texts: str) -> None:
    for text in (*texts, "The harbour froze over", "Tom plays the violin", "The bakery opens at seven"):
        await use("store", text=text)


@pytest.mark.parametrize("tool", ["store", "update_memory"])
@pytest.mark.parametrize("later", [15, 9])
async def test_an_appointment_that_is_moved_is_superseded_at_once(use: Use, tool: str, later: int) -> None:
    """It was "a plan until" its new day, and both days stood under "coming up"."""
    await begun(use)
    old = (await use("store", text=appointment(day(13)), when=f"{day(13)}T15:30"))["id"]
    named = {"supersedes": old} if tool == "store" else {"id": old}
    answer = await use(tool, text=moved_to(day(later)), when=f"{day(later)}T09:15", **named)
    assert answer["superseded"]["id"] == old
    assert "plan" not in answer.get("notice", "")
    assert await recalled(use, DENTIST, limit=1) == [moved_to(day(later))]
    [hit] = (await use("search_memory", query="dentist", since=str(day(1))))["hits"]
    assert (hit["when"], hit["since"]) == (str(day(later)), str(day(0)))
    start = (await use("recall"))["start"]
    assert f"{day(later)}: {moved_to(day(later))}" in start
    assert f"[EPISODIC] {day(13)}:" not in start
    assert await recalled(use, DENTIST, as_of=str(day(0)), limit=1) == [moved_to(day(later))]


async def test_a_price_to_come_stands_behind_what_is_true_until_then(use: Use) -> None:
    """ruling 24; a question's "per" is no word that the plan alone tells of."""
    await begun(use, price := "An hour of technician labour costs 92 euros net.")
    plan = f"As of {written(day(40))} we will charge 98 euros net per technician hour."
    assert "plan" in (await use("store", text=plan, when=str(day(40))))["notice"]
    assert await recalled(use, "What do we take per hour of a technician these days?", limit=2) == [price, plan]


async def test_an_appointment_told_without_when_is_moved_all_the_same(use: Use) -> None:
    await begun(use)
    old = (await use("store", text=appointment(day(13))))["id"]
    moved = await use("store", text=moved_to(day(15)), when=f"{day(15)}T09:15", supersedes=old)
    assert moved["superseded"]["id"] == old
    assert await recalled(use, DENTIST, limit=1) == [moved_to(day(15))]


async def test_an_appointment_whose_old_day_has_passed_is_moved_at_once(use: Use) -> None:
    await begun(use)
    old = (await use("store", text=appointment(day(-6)), when=str(day(-20))))["id"]
    moved = await use("store", text=moved_to(day(15)), when=f"{day(15)}T09:15", supersedes=old)
    assert moved["superseded"]["id"] == old
    assert await recalled(use, DENTIST, limit=1) == [moved_to(day(15))]


async def test_what_began_on_a_day_that_its_text_names_stays_true_until_the_day_of_what_follows(use: Use) -> None:
    old = f"The tram ticket costs 49 euros as of {written(day(-300))}."
    new = f"The tram ticket costs 55 euros as of {written(day(30))}."
    await use("store", text=old, when=str(day(-300)))
    answer = await use("store", text=new, when=str(day(30)), supersedes="m1")
    assert "A plan until" in answer["notice"]
    assert (await recalled(use, "What does the tram ticket cost?"))[0] == old
    assert (await recalled(use, "What does the tram ticket cost?", as_of=str(day(60))))[0] == new


async def test_an_event_to_come_that_is_told_without_its_date_says_so(use: Use) -> None:
    """It is missing under "coming up", and where since and until look."""
    stored = await use("store", text=appointment(day(13)))
    assert f"update_memory({stored['id']}, when: {day(13)})" in stored["notice"]
    await use("update_memory", id=stored["id"], when=str(day(13)))
    assert f"{day(13)}: {appointment(day(13))}" in (await use("recall"))["start"]
    for text, when in (
        (f"The premiere is on {written(day(14))}", day(14)),
        (f"The shop has been closed since {written(day(-3))}", None),
    ):
        assert "notice" not in await use("store", text=text, distinct=True, **({"when": str(when)} if when else {}))


@pytest.mark.parametrize("change", ["is on", "was moved to"])
async def test_a_moved_day_comes_first_before_anyone_decides(use: Use, change: str) -> None:
    """Also the earlier of two days to come."""
    await begun(use)
    old = f"The parents' evening of the school is on {day(13) if change == 'is on' else written(day(13))}."
    new = f"The parents' evening of the school {change} {day(9) if change == 'is on' else written(day(9))}."
    before = await use("store", text=old, when=str(day(13)))
    answer = await use("store", text=new, when=str(day(9)))
    assert answer["may_supersede"][0]["id"] == before["id"]
    assert "plan" not in answer["notice"]
    assert (await recalled(use, "When is the parents' evening of the school?"))[0] == new
    [offer] = [one for one in (await use("run_patrol"))["pending"] if one["kind"] == "supersede"]
    await use("run_patrol", decisions=[{"offer": offer["offer"], "superseded": True}])
    [hit] = (await use("search_memory", query="parents' evening"))["hits"]
    assert (hit["text"], hit["when"], hit["since"]) == (new, str(day(9)), str(day(0)))


@pytest.mark.parametrize("when", [{"when": "today"}, {}])
async def test_what_is_changed_of_an_event_to_come_leaves_its_day(use: Use, when: dict[str, str]) -> None:
    """The day since which the new text is true took the place of the day of the event."""
    await begun(use)
    told = {name: str(day(0)) for name in when}
    flight = f"Aurélie part au Japon le {day(130)} avec le vol AF276"
    changed = f"Aurélie part au Japon le {day(130)} avec le vol AF292"
    old = (await use("store", text=flight, when=str(day(130))))["id"]
    if when:
        answer = await use("update_memory", id=old, text=changed, **told)
    else:
        answer = await use("store", text=changed, supersedes=old)
    [hit] = (await use("search_memory", since=str(day(100))))["hits"]
    assert (hit["id"], hit["when"], hit["since"]) == (answer["id"], str(day(130)), str(day(0)))
    assert (await use("recall_memory", ids=[old]))["memories"][0]["valid_until"][:10] == str(day(0))


async def test_the_new_day_of_an_event_is_read_from_its_text(use: Use) -> None:
    await begun(use)
    old = (await use("store", text=f"The tax deadline is {written(day(6))}.", when=str(day(6))))["id"]
    text = f"The tax deadline was extended to {written(day(12))}."
    await use("store", text=text, when=str(day(0)), supersedes=old)
    [hit] = (await use("search_memory", since=str(day(3))))["hits"]
    assert (hit["text"], hit["when"]) == (text, str(day(12)))
    assert f"{day(12)}: {text}" in (await use("recall"))["start"]


NOW, LATER = "The rent of the flat is 980 euros.", "the rent of the flat is 1040 euros."


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("From {month} on the rent of the flat is 1040 euros.", "How much is the rent of the flat now?"),
        ("Ab {day} kostet die Wohnung 1040 Euro Miete.", "Wie viel Miete kostet die Wohnung?"),
        ("À partir du {day}, le loyer de l'appartement est de 1040 euros.", "Quel est le loyer de l'appartement ?"),
        ("{day}から部屋の家賃は1040ユーロです。", "部屋の家賃はいくらですか"),
    ],
)
@pytest.mark.parametrize("with_when", [False, True])
async def test_what_will_be_true_does_not_come_before_what_is(
    use: Use, memory: OpenedMemoryStore, text: str, question: str, with_when: bool
) -> None:
    begin = (day(60).replace(day=1) + timedelta(days=32)).replace(day=1)
    now = {
        "From": NOW,
        "Ab {d": "Die Wohnung kostet 980 Euro Miete.",
        "À par": "Le loyer de l'appartement est de 980 euros.",
        "{day}": "部屋の家賃は980ユーロです。",
    }[text[:5] if not text.startswith("From") else "From"]
    to_come = text.format(month=f"{begin:%B %Y}", day=begin)
    await begun(use, now)
    answer = await use("store", text=to_come, **({"when": str(begin)} if with_when else {}))
    if before := answer.get("may_supersede"):
        assert f"A plan until {begin}: {before[0]['id']} stays true until then." in answer["notice"]
    assert await recalled(use, question, limit=1) == [now]
    assert to_come in await recalled(use, to_come)
    assert "supersede" not in {offer["kind"] for offer in (await use("run_patrol"))["pending"]}
    on_the_day = datetime.combine(begin + timedelta(days=1), time(9), UTC)
    if before is None:  # in Japanese this embedder reads nothing
        return
    then = await replace(memory.use_cases.recall, now=lambda: on_the_day)(ADA, RecallQuery(text=question))
    assert then.memories[0][0].scene.action == to_come


async def test_what_begins_on_a_day_that_only_its_text_tells_supersedes_on_that_day(use: Use) -> None:
    await begun(use)
    old = (await use("store", text=NOW))["id"]
    begin = day(60).replace(day=1) + timedelta(days=32)
    text = f"From {begin:%B %Y} on {LATER}"
    answer = await use("store", text=text, supersedes=old)
    assert "superseded" not in answer
    assert f"A plan until {begin.replace(day=1)}" in answer["notice"]
    assert (await recalled(use, "How much is the rent of the flat?"))[0] == NOW
    again = await use("store", text=text, supersedes=old)
    assert (again["id"], again["status"]) == (answer["id"], "reinforced")
    assert f"{old} stays true until then" in again["notice"], "nothing was said"
    told_today = await use("store", text=text, supersedes=old, when=str(day(0)))
    assert "superseded" not in told_today, "agents date what they store by the day of telling"
    at_once = await use("store", text=text, supersedes=old, when=str(day(-1)))
    assert at_once["superseded"]["id"] == old, "by an earlier day it is decided"


@pytest.mark.parametrize("when", [{}, {"when": str(day(0))}])
async def test_a_plan_that_only_its_text_tells_of_is_one_memory(use: Use, when: dict[str, str]) -> None:
    """ruling 13: told with `supersedes` only when it was repeated, it became a second memory."""
    await begun(use)
    old = (await use("store", text=NOW))["id"]
    begin = (day(60).replace(day=1) + timedelta(days=32)).replace(day=1)
    text = f"From {begin} on {LATER}"
    first = await use("store", text=text, **when)
    again = await use("store", text=text, supersedes=old, **when)
    assert (again["id"], again["status"]) == (first["id"], "reinforced")
    assert f"{old} stays true until then" in again["notice"]


async def test_a_second_rise_leaves_the_first_one_as_it_is(use: Use) -> None:
    """Both are to come; the first one is true until the second one."""
    await begun(use)
    first = (await use("store", text="From 1 March 2098 on the rent is 1040 euros.", when="2098-03"))["id"]
    second = "From 1 July 2098 on the rent is 1100 euros."
    answer = await use("store", text=second, when="2098-07", supersedes=first)
    assert "A plan until 2098-07" in answer["notice"]


async def test_a_plan_that_is_dropped_was_never_true(use: Use) -> None:
    """It could not be superseded before its own day."""
    await begun(use)
    old = (await use("store", text=NOW, when="2025-01"))["id"]
    plan = (await use("store", text=f"From March 2098 on {LATER}", when="2098-03", supersedes=old))["id"]
    dropped = "The rent of the flat will not rise."
    answer = await use("store", text=dropped, supersedes=plan)
    assert answer["superseded"]["id"] == plan
    assert dropped in await recalled(use, "rent of the flat")
    assert (await recalled(use, "rent of the flat euros", as_of="2025-06")) == [NOW]


async def test_a_version_dated_before_the_one_it_supersedes_is_refused(use: Use) -> None:
    await begun(use)
    old = (await use("store", text="Maria lives in Lyon", when="2026-03"))["id"]
    for call in ({"tool": "store", "supersedes": old}, {"tool": "update_memory", "id": old}):
        with pytest.raises(RuntimeError, match=rf"{old} is true since 2026-03.*update_memory its when alone"):
            await use(text="Maria lives in Rome", when="2025-12", **call)
    assert (await use("search_memory", query="Rome"))["hits"] == []


async def test_a_day_of_today_is_not_before_what_was_told_today(use: Use) -> None:
    await begun(use)
    first = (await use("store", text="Maria lives in Lyon"))["id"]
    second = (await use("store", text="Maria has moved house to Rome", supersedes=first))["id"]
    third = await use("store", text="Maria has her home in Oslo", supersedes=second, when=str(day(0)))
    assert third["superseded"]["id"] == second


async def test_of_a_proposed_pair_that_is_decided_the_answer_says_what_happened(use: Use) -> None:
    await begun(use)
    old = (await use("store", text="Maria lives in Lyon"))["id"]
    new = (await use("store", text="Maria has moved house to Rome"))["id"]
    answer = await use("store", text="Maria has moved house to Rome", supersedes=old)
    assert (answer["id"], answer["status"], answer["superseded"]["id"]) == (new, "reinforced", old)
    assert f"{new} was stored before; now it supersedes {old}." in answer["notice"]


async def test_a_corrected_text_that_names_another_day_says_that_the_date_stays(use: Use) -> None:
    old = (await use("store", text=appointment(day(13)), when=str(day(13))))["id"]
    answer = await use("update_memory", id=old, text=appointment(day(15)))
    assert answer["notice"] == f"It is dated {day(13)}; for {day(15)} update its when alone, too."
    await use("update_memory", id=old, when=str(day(15)))
    assert "notice" not in await use("update_memory", id=old, text=moved_to(day(15)))


async def test_a_plan_that_is_said_to_replace_another_only_when_told_again_does(use: Use) -> None:
    """The answer said "from that day on this comes first", and nothing was kept of it."""
    await begun(use, office := "The office costs 1450 euros a month.")
    plan = f"Starting {written(day(40))} the landlord wants 1520 for our rooms."
    stored = await use("store", text=plan, when=str(day(40)), distinct=True)
    answer = await use("store", text=plan, when=str(day(40)), supersedes="m1")
    assert (answer["id"], "A plan until" in answer["notice"]) == (stored["id"], True)
    question = "What does the office cost a month?"
    assert (await recalled(use, question, limit=2))[0] == office
    assert (await recalled(use, question, as_of=str(day(50)), limit=2))[0] == plan


async def test_a_plan_brings_what_is_true_until_its_day(use: Use) -> None:
    """It stood alone and was taken for what holds today."""
    await begun(use, now := "Everybody gathers by the whiteboard at 9:45.")
    plan = f"On {written(day(30))} the stand-up moves to 9:30."
    assert "A plan until" in (await use("store", text=plan, when=str(day(30)), supersedes="m1"))["notice"]
    assert await recalled(use, "When is the stand-up?", limit=2) == [plan, now]
    assert (await recalled(use, "When does everybody gather by the whiteboard?"))[0] == now


async def test_what_cancels_a_plan_keeps_the_day_on_which_it_was_told(use: Use) -> None:
    """Only the day of the plan was kept, and a search by the given day found nothing."""
    await begun(use)
    old = (await use("store", text="The stand-up will be at 9:30.", when=str(day(20))))["id"]
    text = "The change of the stand-up is cancelled."
    answer = await use("store", text=text, when=str(day(-6)), supersedes=old)
    for since in (-7, 19):
        [hit] = (await use("search_memory", since=str(day(since)), until=str(day(since + 2))))["hits"]
        assert (hit["id"], hit["since"]) == (answer["id"], str(day(-6)))


async def test_undo_takes_a_plan_back_that_an_update_has_made(use: Use) -> None:
    """It took back the correction before instead, and the plan stayed."""
    await begun(use, home := "The family lives in Graça.")
    await use("update_memory", id="m1", when=str(day(-20)))
    plan = await use("update_memory", id="m1", text="The family lives in Sintra.", when=str(day(14)))
    undone = await use("update_memory", id="m1", undo=True)
    assert (undone["id"], undone["versions"][0]["id"]) == (plan["id"], plan["id"])
    assert await recalled(use, "Where does the family live?", as_of=str(day(20)), limit=1) == [home]
    assert (await use("recall_memory", ids=["m1"]))["memories"][0]["when"] == str(day(-20))
    assert (await use("update_memory", id="m1", undo=True))["changed"] == ["when"]


async def test_what_is_true_now_does_not_become_a_plan_by_being_told_again(use: Use) -> None:
    await begun(use, "The pool opens at eight.")
    nine = "The pool opens at nine."
    await use("store", text=nine, when="2025-01")
    await use("store", text=nine, when=str(day(30)), supersedes="m1")
    assert nine in await recalled(use, "When does the pool open?", as_of="2025-06-01")


async def test_a_plan_brings_what_is_true_until_its_day_also_after_that_has_changed(use: Use) -> None:
    await begun(use, "Everybody gathers by the whiteboard at 9:45.")
    plan = f"On {written(day(30))} the stand-up moves to 9:30."
    await use("store", text=plan, when=str(day(30)), supersedes="m1")
    await use("store", text=(now := "Everybody gathers by the window at 9:50."), supersedes="m1")
    assert await recalled(use, "When is the stand-up?", limit=2) == [plan, now]


async def test_a_plan_whose_text_is_corrected_stays_a_plan(use: Use) -> None:
    await begun(use, now := "The family lives in Graça.")
    plan = await use("update_memory", id="m1", text="The family lives in Sintr.", when=str(day(14)))
    await use("update_memory", id=plan["id"], text="The family lives in Sintra.")
    assert (await recalled(use, "Where does the family live?"))[0] == now
    undone = await use("update_memory", id="m1", undo=True)
    assert undone["id"] == plan["id"]


async def test_a_change_of_an_event_to_come_that_is_told_twice_is_one_memory(use: Use) -> None:
    """It is no plan, though it has a beginning of its own: the event keeps its day."""
    await begun(use)
    old = (await use("store", text=f"Aurélie flies on {day(130)} with AF276.", when=str(day(130))))["id"]
    change = {"text": f"Aurélie flies on {day(130)} with AF292.", "supersedes": old}
    first = await use("store", **change)
    assert (await use("store", **change))["id"] == first["id"]


async def test_the_advice_is_followed_late_for_an_event_to_come(use: Use) -> None:
    """What is stored of it has the day of the event, which the call did not name."""
    await begun(use)
    named = [f"Aurélie flies on {day(130)} with AF{number}." for number in (276, 292, 310)]
    first, second = [(await use("store", text=text, when=str(day(130)), distinct=True))["id"] for text in named[:2]]
    await use("store", text=named[2], supersedes=second)
    answer = await use("store", text=named[1], supersedes=first)
    assert (answer["id"], answer["superseded"]["id"]) == (second, first)


async def test_what_supersedes_too_early_says_how_it_waits_for_its_day(use: Use) -> None:
    """ "On 1 December the limit goes to 300" was true at once, without a word."""
    old, new = "The cache limit is 60.", f"On {written(day(5))} the cache limit goes to 300."
    await begun(use, old)
    answer = await use("store", text=new, supersedes="m1")
    [advised] = [part for part in answer["notice"].split(". ") if str(day(5)) in part]
    assert advised.startswith(f"If it stays true until {day(5)}: update_memory({answer['id']}, undo), update_memory(")
    await use("update_memory", id=answer["id"], undo=True)
    await use("update_memory", id=answer["id"], when=str(day(5)))
    plan = await use("store", text=new, supersedes="m1", when=str(day(5)))
    assert (plan["id"], plan["status"]) == (answer["id"], "reinforced")
    assert "A plan until" in plan["notice"]
    assert await recalled(use, "What is the cache limit?", limit=2) == [old, new]
    assert await recalled(use, "What is the cache limit?", as_of=str(day(6)), limit=1) == [new]


async def test_what_is_told_again_to_supersede_too_early_says_so_too(use: Use) -> None:
    old, new = "The cache limit is 60.", f"On {written(day(5))} the cache limit goes to 300."
    await begun(use, old)
    first = await use("store", text=new)
    assert f"first update_memory({first['id']}, when: {day(5)})" in first["notice"]
    again = await use("store", text=new, supersedes="m1")
    assert f"If it stays true until {day(5)}" in again["notice"]


async def test_the_advice_for_a_change_of_a_day_to_come_makes_no_second_memory(use: Use) -> None:
    old, new = "The cache limit is 60.", f"On {written(day(5))} the cache limit goes to 300."
    await begun(use, old)
    first = await use("store", text=new)
    await use("update_memory", id=first["id"], when=str(day(5)))
    plan = await use("store", text=new, supersedes="m1", when=str(day(5)))
    assert (plan["id"], plan["status"]) == (first["id"], "reinforced")
    assert await recalled(use, "What is the cache limit?", limit=2) == [old, new]


async def test_what_says_since_when_it_is_true_is_not_said_to_come_too_early(use: Use) -> None:
    await use("store", text="The rent is 900 euros.", when=str(day(-300)))
    told = f"The rent is 950 euros since yesterday, the invoice follows on {written(day(5))}."
    answer = await use("store", text=told, supersedes="m1", when=str(day(-1)))
    assert "from now on" not in answer.get("notice", "")


async def test_what_takes_an_events_place_is_not_said_to_come_too_early(use: Use) -> None:
    await begun(use, appointment(day(13)))
    answer = await use("store", text=moved_to(day(9)), supersedes="m1")
    assert "from now on" not in answer.get("notice", "")


async def test_a_moved_event_without_its_day_is_told_how_to_come_up(use: Use) -> None:
    """The notice was left out where something was proposed or superseded: "coming up" missed what was moved."""
    await begun(use, appointment(day(13)))
    answer = await use("store", text=moved_to(day(15)))
    assert answer["may_supersede"]
    event = f"If this is an event on {day(15)}"
    assert event in answer["notice"]
    again = await use("store", text=moved_to(day(15)), supersedes=answer["may_supersede"][0]["id"])
    assert event in again["notice"]
    await use("update_memory", id=answer["id"], when=str(day(15)))
    assert f"{day(15)}: {moved_to(day(15))}" in (await use("recall"))["start"]


async def test_a_day_without_its_year_is_near_to_the_day_of_telling(use: Use) -> None:
    """What was told half a year ago of a day soon after is no event of the next year."""
    told = day(-200)
    text = f"The eye test is on {day(-195):%-d %B}."
    assert "notice" not in await use("store", text=text, when=str(told))


async def test_a_period_and_a_beginning_to_come_are_told_how_to_come_up(use: Use) -> None:
    """A period across two months has two days, of which none was offered."""
    begun_on, over_on = day(20), day(55)
    text = f"From {begun_on:%-d %B} to {over_on:%-d %B} the helpdesk rests."
    assert f"an event on {begun_on}" in (await use("store", text=text))["notice"]
    rent = await use("store", text=f"From {day(40):%-d %B %Y} on the parking space costs 90 euros.")
    assert f"If this is true only from {day(40)} on: update_memory({rent['id']}, when: {day(40)})" in rent["notice"]
    await use("update_memory", id=rent["id"], when=str(day(40)))
    assert "parking space" in (await use("recall"))["start"].partition("coming up")[2]


async def test_a_version_that_holds_since_a_past_day_is_offered_no_day_of_an_event(use: Use) -> None:
    """The advice was refused: the version's date says since when it is true."""
    await begun(use)
    old = (await use("store", text=appointment(day(15)), when=str(day(-20))))["id"]
    answer = await use("store", text=moved_to(day(18)), when=str(day(-5)), supersedes=old)
    assert "If this is an event" not in answer.get("notice", "")


async def test_the_day_of_a_fact_is_not_read_from_the_day_since_which_it_is_true(use: Use) -> None:
    """A lease of 2019 ends on the next 31 December, as far as is known."""
    end = day(100)
    answer = await use("store", text=f"The lease of the workshop ends on {end:%-d %B}.", when="2019-05-01")
    assert f"If this is an event on {end}" in answer["notice"]
