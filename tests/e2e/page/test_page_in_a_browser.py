"""The page as a person uses it: each view in light, dark and at a phone's width, changes, keyboard, hostile texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.e2e.hosting import hosted
from tests.e2e.page.browsing import DESKTOP, PHONE, Visitor, chromium, page_link, store, visiting
from tests.e2e.serving import call_tool

pytestmark = pytest.mark.slow

FELT = {"valence": 0.6, "arousal": 0.8, "dominance": 0.1, "safety": -0.3, "novelty": 0.9, "trust": 0.4}
HOSTILE = [
    "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'> <svg onload='window.ran = 3'>",
    "javascript:window.ran=4 \u202e reversed </h1></section><style>body{display:none}</style>",
    "w" * 900,
    "Combining " + "\u0301" * 200 + " signs",
]
LIFE: list[dict[str, Any]] = [
    {"text": "Grace prefers coffee to tea", "actors": ["Grace"], "when": "2026-03-01", "themes": ["drinks"]},
    {
        "text": "We moved to a flat at the harbour of Rotterdam",
        "when": "2026-04-12",
        "importance": 0.9,
        "setting": "Rotterdam",
        "dialogue": ["Look at the water!"],
        "feeling": "Excited, and a little afraid",
        "emotions": ["excitement", "nervousness"],
        "emotion_vector": FELT,
        "lesson": "Measure the door before the sofa is bought",
    },
    {"text": "The migration of the billing database failed", "when": "2026-05-02", "themes": ["work"]},
    {"text": "קפה עם דנה בתל אביב, דיברנו על הספר החדש שלה", "when": "2026-06-03"},
    {"text": "東京で陽子さんと新しい仕事について話した", "when": "2026-06-10"},
    {"text": "ذهبنا إلى السوق في المساء", "when": "2026-06-11"},
    {"text": "A bus passed by", "importance": 0.06},
    *({"text": text} for text in HOSTILE),
    *({"text": f"Tom repaired the violin of Marie, string {n}", "when": f"2026-07-{n:02d}"} for n in range(1, 9)),
]
FAILURE = {
    "task": "Geocode all customer addresses",
    "error": "HTTP 429 after fifty requests",
    "lesson": {
        "discovery": "The geocoding service allows fifty requests a minute",
        "condition": "Geocode many customer addresses",
        "action": "Send them in batches of forty with a pause of a minute",
        "steps": ["Split the addresses", "Wait a minute"],
        "confidence": 0.8,
    },
}
VIEWS = {
    "start": "The memory of", "search?q=where%20do%20we%20live": "Search", "memory/m1": "Grace", "memory/m2": "We",
    "time": "Time", "map": "Map", "graph": "Graph", "graph/Grace": "Graph: Grace", "forgetting": "Forgetting",
    "patrols": "Patrols", "conversations": "Conversations", "written": "Diary", "shared": "Shared facts",
    "shared/s2": "We deploy", "costs": "Costs", "audit": "Audit",
}  # fmt: skip


PAST = dict.fromkeys(VIEWS, "As of") | {"forgetting": "Today, not", "conversation/talk": "As of"}
"""What the banner of each view says of a past date: that it is honoured, or that the view shows today."""


async def live_a_little(data_dir: Path) -> str:
    """Memories, a version, a patrol, a conversation; the run's id."""
    await store(data_dir, LIFE)
    async with hosted(data_dir) as agent:
        run = await call_tool(agent, "run_patrol")
        await call_tool(agent, "update_memory", id="m1", text="Grace drinks only tea now", when="2026-08-01")
        await call_tool(agent, "recall", query="the harbour of Rotterdam")
        messages = [{"role": "user", "text": "Did the migration work?"}, {"role": "assistant", "text": "No."}]
        await call_tool(agent, "observe", session_id="talk", messages=messages)
        await call_tool(agent, "profile", action="set", kind="soul", name="voice", text="calm and kind")
        await call_tool(agent, "share", text="We deploy on Tuesdays, as support is full then", kind="decision")
        await call_tool(agent, "share", text="We deploy on Fridays, <b>all</b>", kind="decision", supersedes="s1")
        await call_tool(agent, "report_failure", **FAILURE)
    return str(run["run_id"])


@pytest.mark.parametrize(
    ("look", "options"),
    [
        ("light", {"viewport": DESKTOP, "color_scheme": "light"}),
        ("dark", {"viewport": DESKTOP, "color_scheme": "dark"}),
        ("phone", {"viewport": PHONE, "has_touch": True, "color_scheme": "light"}),
    ],
)
async def test_every_view_is_whole_and_accessible(tmp_path: Path, look: str, options: dict[str, Any]) -> None:
    data_dir = tmp_path / "data"
    with page_link(data_dir) as link:
        run_id = await live_a_little(data_dir)
        async with chromium() as browser, visiting(browser, link, **options) as visitor:
            faults, wide = {}, {}
            views = VIEWS | {
                f"patrol/{run_id}": "Patrol of",
                "conversation/talk": "Conversation",
                "memory/m8": "script",
            }
            for view, heading in views.items():
                await visitor.see(view, heading=heading)
                await visitor.shoot(f"{re.split('[/?]', view)[0]}-{view[-2:]}-{look}")
                if found := await visitor.accessibility_faults():
                    faults[view] = found
                if (overflow := await visitor.sideways_overflow()) > 0:
                    wide[view] = overflow
            await visitor.look_at("2026-05-10")
            for view, told in PAST.items():
                await visitor.see(view)
                await expect(visitor.page.locator("#past")).to_contain_text(told)
                await visitor.shoot(f"{re.split('[/?]', view)[0]}-{view[-2:]}-{look}-past")
                if found := await visitor.accessibility_faults():
                    faults[f"{view}, past"] = found
                if (overflow := await visitor.sideways_overflow()) > 0:
                    wide[f"{view}, past"] = overflow
            assert faults == {}
            assert wide == {}
            assert await visitor.page.evaluate("window.ran") is None
            assert visitor.complaints == []
            secret = [name for name in await visitor.page.evaluate("document.cookie.split(';')") if name]
            assert secret == []


async def test_a_person_corrects_supersedes_keeps_and_forgets(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with page_link(data_dir) as link:
        await store(data_dir, LIFE)
        async with chromium() as browser, visiting(browser, link) as visitor:
            page = visitor.page
            await page.get_by_label("Search the memory").press_sequentially("where do we live?", delay=20)
            await page.get_by_role("link", name="We moved to a flat").first.click()
            await expect(page.get_by_role("img", name="Feeling: valence 0.6")).to_be_visible()

            await page.get_by_role("button", name="Correct").click()
            await page.get_by_label("What it says").fill("We moved to a small flat at the harbour of Rotterdam")
            await page.get_by_role("button", name="Save").click()
            await expect(page.locator("h1")).to_contain_text("small flat")
            await expect(page.locator("del")).to_contain_text("a flat at the harbour")

            await visitor.see("memory/m1", heading="Grace")
            await page.get_by_role("button", name="Something else is true now").click()
            await page.get_by_label("What is true instead").fill("Grace drinks only tea now")
            await page.get_by_label("Since", exact=True).fill("2026-08-01")
            await page.get_by_role("button", name="Save").click()
            await expect(page.locator(".versions li")).to_have_count(2)
            await page.get_by_label("As of").fill("2026-07-01")
            await page.get_by_label("Search the memory").fill("What does Grace drink?")
            await expect(page.locator("#search")).to_contain_text("Grace prefers coffee")
            await page.get_by_label("As of").fill("")
            await expect(page.locator("#search")).to_contain_text("Grace drinks only tea now")

            await visitor.see("forgetting", heading="Forgetting")
            await page.get_by_role("button", name="Keep m7").click()
            await expect(page.get_by_role("button", name="Keep m7")).to_have_count(0)

            await visitor.see("memory/m3", heading="The migration")
            await page.get_by_role("button", name="It was never true").click()
            await page.get_by_label("Why").fill("It was another database")
            await page.get_by_role("button", name="Retract").click()
            await expect(page.locator("main")).to_contain_text("Retracted: It was another database")
            await page.get_by_role("button", name="Take that back").click()
            await expect(page.locator("main")).not_to_contain_text("Retracted:")

            await page.get_by_role("button", name="Forget …").click()
            await page.get_by_role("button", name="Keep it").click()
            await page.get_by_role("button", name="Forget …").click()
            await expect(page.get_by_role("dialog")).to_contain_text("The migration of the billing database failed")
            await page.get_by_role("button", name="Erase for good").click()
            await expect(page.locator("h1")).to_have_text("Forgotten")
            await expect(page.locator("main")).to_contain_text("there is no m3 any more")
            assert visitor.complaints == []
        async with hosted(data_dir) as agent:
            assert (await call_tool(agent, "search_memory", query="billing"))["hits"] == []


async def test_a_patrol_is_watched_undone_and_decided_by_hand(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with page_link(data_dir) as link:
        await store(data_dir, LIFE)
        async with chromium() as browser, visiting(browser, link) as visitor, hosted(data_dir) as agent:
            page = visitor.page
            await call_tool(agent, "store", text="Ali bought a red bicycle")
            await expect(page.locator("main")).to_contain_text("Ali bought a red bicycle")  # live

            await visitor.see("patrols", heading="Patrols")
            await page.get_by_role("button", name="What would one do?").click()
            await expect(page.locator("#preview")).to_contain_text("assigned")
            await page.get_by_role("button", name="Run a patrol now").click()
            await expect(page.locator(".runs li")).to_have_count(1)
            diary = page.locator("form.decision[data-kind=diary]")
            await expect(diary).to_contain_text("Ali bought a red bicycle")
            await diary.get_by_label("Entry").fill("A day of many small things.\nTom tuned.\nIt rained.")
            await diary.get_by_label("For the next session").fill("Ask for the bicycle\nAsk for the flat\nTune it")
            await diary.get_by_role("button", name="Decide").click()
            await expect(page.locator(".runs li")).to_have_count(2)
            await visitor.see("written", heading="Diary")
            await expect(page.locator("main")).to_contain_text("A day of many small things.")

            await visitor.see("patrols", heading="Patrols")
            await page.locator(".runs a").first.click()
            await expect(page.locator("ins").first).to_be_visible()
            await page.get_by_role("button", name="Undo this run").click()
            await expect(page.locator(".badge").first).to_have_text("undone")
            await visitor.see("written", heading="Diary")
            await expect(page.locator("main")).not_to_contain_text("A day of many small things.")
            assert visitor.complaints == []


async def drag_around(page: Page, part: float) -> None:
    """A loop around this part of the canvas, from the left."""
    box = await page.locator("canvas").bounding_box()
    assert box
    for step, (x, y) in enumerate([(0.01, 0.01), (part, 0.01), (part, 0.99), (0.01, 0.99), (0.01, 0.5)]):
        await page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=4)
        if step == 0:
            await page.mouse.down()
    await page.mouse.up()


async def test_what_a_loop_or_a_key_selects_on_the_map_is_pinned_or_forgotten(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with page_link(data_dir) as link:
        await store(data_dir, LIFE)
        async with chromium() as browser, visiting(browser, link) as visitor:
            page, selected = visitor.page, visitor.page.locator("#selection li")
            await visitor.see("map", heading="Map")
            canvas, left_part, whole = page.locator("canvas"), 0.6, 0.99
            await drag_around(page, whole)  # without a key it moves the map
            await expect(selected).to_have_count(0)
            await page.get_by_role("button", name="All", exact=True).click()
            await page.keyboard.down("Shift")
            await drag_around(page, left_part)
            await page.keyboard.up("Shift")
            some = await selected.count()
            assert 0 < some < len(LIFE)
            await page.get_by_role("button", name="Lasso").click()
            await drag_around(page, whole)
            await expect(selected).to_have_count(len(LIFE))
            await visitor.shoot("map-lasso")

            await page.get_by_role("button", name="Pin all", exact=True).click()
            await expect(page.locator("#selection .badge.good")).to_have_count(len(LIFE))
            await page.get_by_role("button", name="Unpin all").click()
            await expect(page.locator("#selection .badge.good")).to_have_count(0)

            await canvas.press("Escape")
            await expect(selected).to_have_count(0)
            for _ in range(5):
                await page.keyboard.press("+")
            await page.keyboard.press("Enter")
            assert await selected.count() < len(LIFE)
            await canvas.press("0")
            await page.keyboard.press("Enter")
            await expect(selected).to_have_count(len(LIFE))
            assert await visitor.accessibility_faults() == []
            await page.get_by_role("button", name="Forget …").click()
            await expect(page.get_by_role("dialog")).to_contain_text(f"Forget {len(LIFE)} memories?")
            await page.get_by_role("button", name="Keep them").click()
            await page.get_by_role("button", name="Forget …").click()
            await page.get_by_role("button", name="Erase for good").click()
            await expect(page.locator("main")).to_contain_text("there is none of them any more")
            assert visitor.complaints == []
        async with hosted(data_dir) as agent:
            assert (await call_tool(agent, "search_memory", query="harbour"))["hits"] == []


async def test_the_whole_page_is_looked_at_as_of_a_date(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with page_link(data_dir) as link:
        await live_a_little(data_dir)
        async with chromium() as browser, visiting(browser, link) as visitor:
            page, main = visitor.page, visitor.page.locator("main")
            await visitor.look_at("2026-05-10")
            await expect(main.locator(".counts")).to_contain_text("true then3")
            await expect(main).to_contain_text("Nothing was stored by then")
            await expect(main).to_contain_text("1 entry was written or changed later")
            await visitor.see("time", heading="Time")
            await expect(main).to_contain_text("3 scenes in view")
            await expect(main).not_to_contain_text("string 4")
            await visitor.see("map", heading="Map")
            await expect(main).to_contain_text("3 memories were true then")
            await expect(page.get_by_role("button", name="Forget")).to_have_count(0)
            await visitor.see("memory/m1", heading="Grace prefers coffee")
            await expect(main).to_contain_text("It was stored later")
            await expect(main.locator(".actions")).to_have_count(0)
            await expect(main.locator(".badge", has_text="superseded")).to_have_count(0)
            await visitor.see("shared", heading="Shared facts")
            await expect(main).to_contain_text("Nothing was shared and true then")
            await visitor.see("patrols", heading="Patrols")
            await expect(main).to_contain_text("No patrol had run by then")
            await visitor.see("conversations", heading="Conversations")
            await expect(main.locator("li")).to_have_count(0)
            await visitor.see("audit", heading="Audit")
            await expect(main.locator("tbody tr")).to_have_count(0)
            await page.get_by_role("button", name="Back to today").click()
            await expect(main.locator("tbody tr").first).to_be_visible()
            await expect(page.locator("#past")).to_be_hidden()
            assert visitor.complaints == []


async def test_what_all_share_is_written_here_by_who_may(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with page_link(data_dir) as link:
        await store(data_dir, LIFE[:1])
        async with chromium() as browser, visiting(browser, link) as visitor:
            page, main = visitor.page, visitor.page.locator("main")
            await visitor.see("shared", heading="Shared facts")
            await page.get_by_role("button", name="Share something").click()
            await page.get_by_label("What all should know").fill("PRs need two approvals")
            await page.get_by_label("Kind").select_option("policy")
            await page.get_by_role("button", name="Share", exact=True).click()
            await main.get_by_role("link", name="PRs need two approvals").click()
            await page.get_by_role("button", name="Something else is true now").click()
            await page.get_by_label("What is true instead").fill("PRs need one approval")
            await page.get_by_role("button", name="Save").click()
            await expect(main.locator(".versions li")).to_have_count(2)
            await page.get_by_role("button", name="Retract").click()
            await page.get_by_label("Why it was never true").fill("It was a draft")
            await page.get_by_role("dialog").get_by_role("button", name="Retract").click()
            await expect(main).to_contain_text("Retracted: It was a draft")
            await page.get_by_role("button", name="Take that back").click()
            await expect(main).not_to_contain_text("Retracted:")
            await visitor.see("memory/m1", heading="Grace")
            await page.get_by_role("button", name="Share", exact=True).click()
            await page.get_by_role("dialog").get_by_role("button", name="Share", exact=True).click()
            await visitor.see("shared", heading="Shared facts")
            await expect(main).to_contain_text("Grace prefers coffee to tea")
            async with hosted(data_dir, being="bo") as other:
                await call_tool(other, "share", text="The build runs on two cores")
            await expect(main).to_contain_text("The build runs on two cores")  # as soon as another has shared it
            await main.get_by_role("link", name="Grace prefers coffee").click()
            await page.get_by_role("button", name="Erase …").click()
            await page.get_by_role("button", name="Erase for good").click()
            await expect(main).to_contain_text("there is no s3 any more")
            assert [complaint for complaint in visitor.complaints if "400" not in complaint] == []  # looked for in vain
        async with hosted(data_dir) as agent:
            listed = (await call_tool(agent, "search_shared", scope="shared"))["memories"]
            assert {fact["text"] for fact in listed} == {"PRs need one approval", "The build runs on two cores"}


async def focused(visitor: Visitor) -> str:
    words = "(document.activeElement.textContent || document.activeElement.id || '').trim()"
    return str(await visitor.page.evaluate(words))


async def test_everything_is_reached_by_the_keyboard(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with page_link(data_dir) as link:
        await store(data_dir, LIFE)
        async with chromium() as browser, visiting(browser, link) as visitor:
            keyboard = visitor.page.keyboard
            await keyboard.press("/")
            await keyboard.type("Grace coffee")
            await expect(visitor.page.locator("#search article").first).to_contain_text("Grace prefers coffee")
            await expect(visitor.page.locator("#search article .why").first).to_contain_text("meaning")
            for _ in range(40):
                await keyboard.press("Tab")
                if (await focused(visitor)).startswith("Grace prefers coffee"):
                    break
            await keyboard.press("Enter")
            await expect(visitor.page.locator("h1")).to_contain_text("Grace prefers coffee")
            await keyboard.press("Tab")
            assert await focused(visitor) == "Correct"
            await keyboard.press("Enter")
            await expect(visitor.page.get_by_role("dialog")).to_be_visible()
            await keyboard.press("Escape")
            await expect(visitor.page.get_by_role("dialog")).to_have_count(0)

            await visitor.see("map", heading="Map")
            canvas = visitor.page.locator("canvas")
            await canvas.focus()
            before = await canvas.screenshot()
            for key in ("+", "+", "ArrowLeft"):
                await keyboard.press(key)
            await visitor.page.wait_for_timeout(500)
            assert await canvas.screenshot() != before
            await expect(visitor.page.locator("main .cards article").first).to_be_visible()
            await visitor.see("start")
            await keyboard.press("Tab")
            assert visitor.complaints == []
