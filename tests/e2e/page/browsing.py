"""The page of a real process in a real browser, Debian's Chromium, by Playwright."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect

from tests.e2e.hosting import hosted, no_host_left
from tests.e2e.serving import COMMAND, ROOT, call_tool, environment, furnish

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCREENSHOTS = ROOT / "build" / "page-screenshots"
"""Kept, to be looked at."""
WAIT_MILLISECONDS = 30_000
"""For what a person would see, on a machine whose disk and processors other tests share."""
DESKTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RUN_AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
    .filter(({impact}) => impact === "serious" || impact === "critical")
    .map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`)"""
NOISE = ("GPU stall", "GroupMarkerNotSet", "Automatic fallback to software")
"""What a browser without a graphics card says of itself."""


@contextmanager
def page_link(data_dir: Path, *arguments: str) -> Iterator[str]:
    """The link that `madeleine ui` prints, as long as it runs."""
    furnish(data_dir)
    with (
        no_host_left(data_dir),
        subprocess.Popen(
            [*COMMAND, "ui", "--no-browser", *arguments],
            env=environment(data_dir),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process,
    ):
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(timeout=30)


async def store(data_dir: Path, scenes: Sequence[dict[str, Any]]) -> None:
    """As an agent does."""
    async with hosted(data_dir) as agent:
        for scene in scenes:
            await call_tool(agent, "store", **scene)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium")
    expect.set_options(timeout=WAIT_MILLISECONDS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


class Visitor:
    """A window with the page. `complaints`: errors of its scripts, refused requests, dialogs."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"))
        page.on("requestfailed", lambda request: self._note_failure(request.url, request.failure or ""))

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(part in message.text for part in NOISE):
            self.complaints.append(message.text)

    def _note_failure(self, url: str, reason: str) -> None:
        if "ERR_ABORTED" not in reason:  # a search that the next sign has overtaken, a stream that was left
            self.complaints.append(f"{url}: {reason}")

    async def see(self, view: str, *, heading: str = "") -> None:
        """Go to a view, and wait until it is shown."""
        await self.page.evaluate("view => { location.hash = `#/${view}`; }", view)
        await self.page.locator("main h1", has_text=heading).wait_for()
        await self.page.locator("main .loading").wait_for(state="detached")
        await self.page.wait_for_timeout(400)  # the canvas is drawn, and what stands below it

    async def look_at(self, date: str) -> None:
        """Show everything as of a date: ISO."""
        await self.page.get_by_label("As of").fill(date)
        await self.page.locator("#past").wait_for()

    async def shoot(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    async def accessibility_faults(self) -> list[str]:
        await self.page.evaluate(AXE)
        faults = await self.page.evaluate(RUN_AXE)
        assert isinstance(faults, list)
        return faults

    async def sideways_overflow(self) -> int:
        return int(await self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@asynccontextmanager
async def visiting(browser: Browser, link: str, **options: Any) -> AsyncIterator[Visitor]:
    """A window that has opened the page by its link. `options`: of the browser's context."""
    context: BrowserContext = await browser.new_context(**({"viewport": DESKTOP} | options))
    context.set_default_timeout(WAIT_MILLISECONDS)
    visitor = Visitor(await context.new_page())
    await visitor.page.goto(link)
    await visitor.page.locator("#nav a").first.wait_for()
    try:
        yield visitor
    finally:
        await context.close()
