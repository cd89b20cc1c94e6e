"""Erasing on the page: the proof that it shows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from tests.e2e.hosting import hosted
from tests.e2e.page.browsing import chromium, page_link, store, visiting
from tests.e2e.serving import call_tool

pytestmark = pytest.mark.slow


@contextlib.asynccontextmanager
async def next_answer_held(page: Page, tool: str) -> AsyncIterator[tuple[asyncio.Event, asyncio.Event]]:
    """Events: the page has asked this tool once; its answer may arrive."""
    asked, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await released.wait()
        await route.continue_()

    await page.route(f"**/api/tools/{tool}", hold, times=1)
    yield asked, released


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
            async with next_answer_held(page, tool) as (asked, released):
                await call_tool(other, "update_memory", id="m1", importance=0.9)
                await call_tool(other, "share", text="The build runs on two cores")
                await asyncio.wait_for(asked.wait(), 20)
                await page.get_by_role("button", name=f"{words} …").click()
                await page.get_by_role("button", name="Erase for good").click()
                await expect(main).to_contain_text("Looked for again: there is no")
                async with page.expect_response(f"**/api/tools/{tool}"):
                    released.set()
            await page.evaluate("() => new Promise(requestAnimationFrame)")
            await expect(main).to_contain_text("Looked for again: there is no")
