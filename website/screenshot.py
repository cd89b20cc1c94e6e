"""The picture of the front page: `python -m website.screenshot`, or `make pictures`.

The page in headless Chromium, with the memory of `make demo`: a question whose answer has changed.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from playwright.async_api import ViewportSize, async_playwright
from rich.console import Console

from examples.demo import run_demo
from madeleine.server.background.loops import PatrolEventBroadcast
from madeleine.server.settings.settings import Settings
from madeleine.server.ui.serve import serve_web_ui
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from website.pictures import FOLDER

PICTURE = FOLDER / "page.png"
SIZE: ViewportSize = {"width": 1160, "height": 760}
QUESTION = "Is Ines going to take the job in Rotterdam?"


async def shoot(target: Path) -> None:
    """Raises what Playwright does where there is no Chromium."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory(prefix="madeleine-") as name:
        folder = Path(name)
        await run_demo(Console(quiet=True), folder, folder / "server.log")
        settings = Settings(data_dir=folder / "data", being="demo")
        async with (
            LanguageModelPool(settings) as models,
            open_memory_store(settings) as memory,
            async_playwright() as playwright,
        ):

            async def opened() -> OpenedMemoryStore:
                return memory

            async with serve_web_ui(settings, opened, models, PatrolEventBroadcast()) as link:
                browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                page = await browser.new_page(viewport=SIZE, color_scheme="light", locale="en-GB")
                await page.goto(link)
                await page.get_by_label("Search the memory").fill(QUESTION)
                await page.locator("#search[aria-busy=false] article .why").first.wait_for()
                await page.screenshot(path=target)
                await browser.close()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    asyncio.run(shoot(PICTURE))
    print(PICTURE)


if __name__ == "__main__":
    main()
