"""Queries for days and nothing else are answered as by a calendar (ADR 90, ruling 19: what a filter names matches)."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.tools.conftest import Use
from tests.unit.tools.test_plans import begun, day


async def test_a_question_for_the_days_to_come_is_a_calendar(use: Use) -> None:
    """ "What is coming up next week?" brought what says "week", and not what is dated to it."""
    await begun(use)
    for text, days in (("The grant is due", 9), ("Leni's recital", 4), ("The fair opens", 40)):
        await use("store", text=text, when=str(day(days)))
    answer = await use("recall", query="What do we have to do in the next ten days?", format="memories")
    assert [memory["text"] for memory in answer["memories"]] == ["Leni's recital", "The grant is due"]
    assert answer["notice"] == f"What is dated {day(1)} to {day(10)}."
    block = await use("recall", query="What do we have to do in the next ten days?", format="prompt")
    assert "recital" in block["prompt"]
    assert "fair" not in block["prompt"]
    assert "notice" not in await use("recall", query="What is on tomorrow?", since=str(day(30)), format="memories")


async def test_what_a_text_announces_is_of_the_day_that_it_names(use: Use) -> None:
    """ADR 99: agents often store no date, or that of the telling."""
    await begun(use, plumber := "The plumber comes tomorrow")
    await use("store", text=(gutter := f"The gutters are cleaned on {day(9):%-d %B %Y}"), when=str(day(-2)))
    await use("store", text="Leni's recital", when=str(day(1)))
    assert set(await texts(use, "What is on tomorrow?")) == {plumber, "Leni's recital"}
    assert await texts(use, f"What is on {day(9):%-d %B %Y}?") == [gutter]
    assert (await texts(use, "What appointments are coming up?"))[-1] == gutter
    assert gutter in (await use("recall"))["start"].partition("coming up")[2]
    found = await use("search_memory", since=str(day(9)), until=str(day(9)), sources=["memories"])
    assert [hit["text"] for hit in found["hits"]] == [gutter]
    between = await use("search_memory", since=str(day(3)), until=str(day(5)), sources=["memories"])
    assert gutter not in {hit["text"] for hit in between["hits"]}


async def test_what_was_announced_and_moved_before_its_day_is_not_of_that_day(use: Use) -> None:
    told = await use("store", text=f"The roof is inspected on {day(9):%-d %B %Y}", when=str(day(-2)))
    later = f"The roof is inspected on {day(16):%-d %B %Y}"
    await use("store", text=later, when=str(day(16)), supersedes=told["id"])
    assert await texts(use, f"What is on {day(16):%-d %B %Y}?") == [later]
    answer = await use("recall", query=f"What is on {day(9):%-d %B %Y}?", format="memories")
    assert answer["notice"] == f"Nothing is dated {day(9)}."


async def texts(use: Use, query: str) -> list[str]:
    return [memory["text"] for memory in (await use("recall", query=query, format="memories"))["memories"]]


async def test_a_question_for_days_gone_by_is_a_calendar_too(use: Use) -> None:
    """ "What happened last week?" found nothing, and named the days of the week as unknown words."""
    for text, days in (("The tap was mended", -3), ("Leni's recital", -1), ("The fair opened", -40), ("A new lock", 4)):
        await use("store", text=text, when=str(day(days)))
    assert await texts(use, "What did we do yesterday?") == ["Leni's recital"]
    assert await texts(use, "Was ist in den letzten drei Tagen passiert?") == ["The tap was mended", "Leni's recital"]
    assert await texts(use, f"What happened since {day(-50):%-d %B %Y}?") == [
        "The fair opened",
        "The tap was mended",
        "Leni's recital",
    ]
    empty = await use("recall", query="What happened 10 days ago?", format="memories")
    assert empty["notice"] == f"Nothing is dated {day(-10)}."
    assert "unknown_words" not in empty


async def test_of_a_day_without_its_year_the_one_is_meant_that_something_is_dated_to(use: Use) -> None:
    """ "What happened on 12 March?" was answered with "Nothing is dated" to the next one."""
    last_year = day(60).replace(year=day(60).year - 1, day=28)
    await use("store", text="The harbour froze over", when=str(last_year))
    answer = await use("recall", query=f"What happened on {last_year:%-d %B}?", format="memories")
    assert [memory["text"] for memory in answer["memories"]] == ["The harbour froze over"]
    assert answer["notice"] == f"What is dated {last_year}."


async def test_where_nothing_matches_what_is_dated_to_the_days_of_the_query_is_near(use: Use) -> None:
    await use("store", text="The backup failed, the disk was full", when=str(day(-1)))
    await use("store", text="The fair opened", when=str(day(-40)))
    answer = await use("recall", query="Which quarrel was there yesterday?", format="memories")
    assert answer["memories"] == []
    assert answer["near"][0]["text"] == "The backup failed, the disk was full"
    assert answer["notice"] == f"Near is first what is dated {day(-1)}."


async def test_of_the_days_of_a_week_one_is_enough(use: Use) -> None:
    """The other six were unknown words, and kept what matches from being found."""
    told = day(-14)
    await use("store", text="Ada cooked a dinner of lentils", when=str(told))
    await use("store", text="Ben plays the violin", when=str(day(-40)))
    assert await texts(use, "What did Ada cook two weeks ago?") == ["Ada cooked a dinner of lentils"]


async def test_a_month_in_another_language_than_the_memories_is_no_unknown_word(use: Use) -> None:
    """Dates beside memories are in English words."""
    await use("store", text="Ada passed her driving test", when="2026-03-28")
    await use("store", text="Ada was in Rome with her sister", when="2026-05-03")
    assert (await texts(use, "Was hat Ada im März gemacht?"))[0] == "Ada passed her driving test"
    answer = await use("recall", query="Qu'est-ce qu'Ada a fait en mai ?", format="memories")
    assert "unknown_words" not in answer
    assert (await use("recall", query="Was hat Ada im Juni gemacht?", format="memories"))["unknown_words"] == ["juni"]


async def test_what_happened_on_a_day_is_told_as_it_was_then(use: Use) -> None:
    """It was listed as what is true now, with a date of what was before."""
    old = await use("store", text="Production was upgraded to Postgres 16", when=str(day(-60)))
    await use("store", text="Production was upgraded to Postgres 17", when=str(day(-4)), supersedes=old["id"])
    asked = f"What did we do on {day(-60):%-d %B %Y}?"
    assert await texts(use, asked) == ["Production was upgraded to Postgres 16"]


async def test_a_memory_that_the_model_cannot_read_is_listed_too(use: Use) -> None:
    """It shares no word with the question, and has no vector to compare."""
    await use("store", text="ゆきさんが熱を出した", when=str(day(-1)))
    await use("store", text="Ben plays the violin", when=str(day(-1)))
    assert set(await texts(use, "What happened yesterday?")) == {"ゆきさんが熱を出した", "Ben plays the violin"}


async def test_where_nothing_tells_which_of_two_days_is_meant_both_are_told(use: Use) -> None:
    """ "Was ist am Dienstag?" brought what was, and the English question what will be."""
    monday = next(day(-days) for days in range(1, 8) if day(-days).weekday() == 0)
    await use("store", text="Leni's recital", when=str(monday))
    await use("store", text="The fair opens", when=str(monday + timedelta(weeks=1)))
    assert await texts(use, "Was ist am Montag?") == ["Leni's recital", "The fair opens"]
    assert await texts(use, "What happened on Monday?") == ["Leni's recital"]
    assert await texts(use, "What is planned for Monday?") == ["The fair opens"]


async def test_of_what_somebody_did_that_comes_first_which_is_dated_to_the_days_of_the_query(use: Use) -> None:
    """ "What did Ben fix last week?" began with what he fixed in June."""
    for text, days in (("Ben fixed the fence", -60), ("Ben fixed the old shed", -2), ("Ben fixed the gate", -90)):
        await use("store", text=text, when=str(day(days)))
    assert (await texts(use, "What did Ben fix in the last three days?"))[0] == "Ben fixed the old shed"
    await use("store", text="Ada went for a swim", when=str(day(-1)))
    late = await use("recall", query="What did Ben fix yesterday?", format="memories")
    assert late["notice"] == f"No match is dated {day(-1)}."
    explained = await use("recall", query="What did Ben fix in the last three days?", format="memories", explain="all")
    assert "days" in str(explained)


async def test_the_day_of_a_longer_message_counts_in_its_last_question(use: Use) -> None:
    """Its day was dropped as a word that the message does not have."""
    await use("store", text="Ada cooked a dinner of lentils", when=str(day(-400)))
    await use("store", text="Ben plays the violin", when=str(day(-30)))
    answer = await use(
        "recall", query="I was at work all day. It rained a lot. What did Ada cook yesterday?", format="memories"
    )
    assert "Ada cooked a dinner of lentils" not in [memory["text"] for memory in answer["memories"]]


async def test_what_is_dated_to_two_days_is_told_once(use: Use) -> None:
    monday = next(day(-days) for days in range(1, 8) if day(-days).weekday() == 0)
    await use("store", text="The fair is open", when=f"{monday}/{monday + timedelta(weeks=1)}")
    assert await texts(use, "Was ist am Montag?") == ["The fair is open"]


async def test_what_is_too_long_for_the_budget_is_dated_all_the_same(use: Use) -> None:
    """ "Nothing is dated" stood before "Too long for token_budget"."""
    await use("store", text="Ada wrote down " + "a long list of words " * 40, when=str(day(-1)))
    answer = await use("recall", query="What happened yesterday?", format="memories", token_budget=20)
    assert "Nothing is dated" not in answer["notice"]


async def test_of_days_around_today_what_is_over_is_told_as_it_was(use: Use) -> None:
    """What was superseded today was left out of "this week"."""
    old = await use("store", text="Production was upgraded to Postgres 16", when=str(day(-6)))
    await use("store", text="Production was upgraded to Postgres 17", when=str(day(0)), supersedes=old["id"])
    asked = f"What happened since {day(-9):%-d %B %Y}?"
    assert await texts(use, asked) == [
        "Production was upgraded to Postgres 16",
        "Production was upgraded to Postgres 17",
    ]
    answer = await use("recall", query=asked, format="memories", limit=1)
    assert len(answer["memories"]) <= 2
    assert answer["notice"].startswith(f"What is dated {day(-9)} to {day(0)}.")


async def test_what_is_coming_up_is_all_that_is_dated_from_today_on(use: Use) -> None:
    """It found nothing, for it names nothing."""
    await begun(use)
    for text, days in (("The grant is due", 400), ("Leni's recital", 4), ("The fair opened", -4)):
        await use("store", text=text, when=str(day(days)))
    answer = await use("recall", query="What's coming up?", format="memories")
    assert [memory["text"] for memory in answer["memories"]] == ["Leni's recital", "The grant is due"]
    assert answer["notice"] == f"What is dated {day(0)} or later."


async def test_deadlines_that_are_coming_up_come_first(use: Use) -> None:
    await begun(use)
    for text, days in (("The deadline of the tax return", -20), ("The deadline of the grant", 30)):
        await use("store", text=text, when=str(day(days)))
    assert (await texts(use, "What deadline is coming up?"))[0] == "The deadline of the grant"
    notice = (await use("recall", query="Which quarrels are coming up?", format="memories"))["notice"]
    assert notice == f"Near is first what is dated {day(0)} or later."


async def test_a_period_around_today_stays_within_limit_and_budget_and_tells_of_both_sides(use: Use) -> None:
    for days in range(-3, 4):
        await use("store", text=f"Bakery number {days + 10} opened", when=str(day(days)))
    for query in ("What is on this week?", "What happened this month?"):
        few = await use("recall", query=query, limit=2, format="memories")
        assert len(few["memories"]) <= 2
        assert "recall failed" not in str(await use("recall", query=query, token_budget=1, format="memories"))


async def test_what_lies_on_a_day_to_come_is_near_whatever_is_asked_of_it(use: Use) -> None:
    """ADR 102: the freeze shares no word with "May we deploy tomorrow?", and speaks against it."""
    await begun(use)
    deploys, freeze = "We deploy depots by Argo", f"Nothing is shipped from {day(1)} to {day(5)}"
    for text in (deploys, freeze, f"The fair opens {day(30)}"):
        await use("store", text=text, when=str(day(-2)))
    answer = await use("recall", query="May we deploy depots tomorrow?", format="memories")
    assert [memory["text"] for memory in answer["memories"]] == [deploys]
    assert [memory["text"] for memory in answer["near"]] == [freeze]
    assert answer["notice"] == f"Near is first what is dated {day(1)}."
    assert "near" not in await use("recall", query="May we deploy depots in eight days?", format="memories")
    asked = await use("recall", query="May we deploy depots tomorrow?", until=str(day(0)), format="memories")
    assert "Near" not in asked.get("notice", "")
