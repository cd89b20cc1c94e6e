"""An answer that arrives late does not draw over what a person reads or writes on the page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from tests.e2e.hosting import hosted
from tests.e2e.page.browsing import chromium, page_link, store, visiting
from tests.e2e.serving import call_tool

pytestmark = pytest.mark.slow


async def hold_next_answer(page: Page, tool: str) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold the answer to the page's next call of the tool. Returns two events: the first is set by that call, the
    second is to be set for the answer to arrive."""
    asked, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await released.wait()
        await route.continue_()

    await page.route(f"**/api/tools/{tool}", hold, times=1)
    return asked, released


async def release_and_await_answer(page: Page, *, tool: str, released: asyncio.Event) -> None:
    """Let the answer arrive that was held, and the page draw what it draws of it."""
    async with page.expect_response(f"**/api/tools/{tool}") as answer:
        released.set()
    await (await answer.value).finished()
    await page.evaluate("() => new Promise((done) => setTimeout(() => requestAnimationFrame(done)))")


@pytest.mark.parametrize(
    ("view", "tool", "words"), [("shared/s1", "search_shared", "Erase"), ("memory/m1", "recall_memory", "Forget")]
)
async def test_the_proof_of_an_erasure_stays_when_an_older_answer_arrives_after_it(
    tmp_path: Path, view: str, tool: str, words: str
) -> None:
    data_dir = tmp_path / "data"
    with page_link(data_dir) as link:
        await store(data_dir, [{"text": "Grace prefers coffee to tea"}])
        async with hosted(data_dir) as agent:
            await call_tool(agent, "share", text="PRs need two approvals")
        async with chromium() as browser, visiting(browser, link) as visitor, hosted(data_dir) as other:
            page, main = visitor.page, visitor.page.locator("main")
            await visitor.see(view)
            asked, released = await hold_next_answer(page, tool)
            await call_tool(other, "update_memory", id="m1", importance=0.9)
            await call_tool(other, "share", text="The build runs on two cores")
            await asyncio.wait_for(asked.wait(), 20)
            await page.get_by_role("button", name=f"{words} …").click()
            await page.get_by_role("button", name="Erase for good").click()
            await expect(main).to_contain_text("Looked for again: there is no")
            await release_and_await_answer(page, tool=tool, released=released)
            await expect(main).to_contain_text("Looked for again: there is no")


async def test_a_decision_that_is_being_written_stays_when_the_list_of_patrols_arrives(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with page_link(data_dir) as link:
        await store(data_dir, [{"text": "Grace prefers coffee to tea"}])
        async with chromium() as browser, visiting(browser, link) as visitor, hosted(data_dir) as agent:
            await call_tool(agent, "run_patrol")
            await visitor.see("patrols", heading="Patrols")
            entry = visitor.page.locator("form.decision[data-kind=diary]").get_by_label("Entry")
            await expect(entry).to_be_visible()
            asked, released = await hold_next_answer(visitor.page, "run_patrol")
            await call_tool(agent, "run_patrol")
            await asyncio.wait_for(asked.wait(), 20)
            await entry.fill("A day of many small things.")
            await release_and_await_answer(visitor.page, tool="run_patrol", released=released)
            await expect(entry).to_have_value("A day of many small things.")
