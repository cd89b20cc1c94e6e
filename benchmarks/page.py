"""The page with many memories, in headless Chromium: `python -m benchmarks.page`.

The map is drawn in parts: its first points are the landmarks, the others follow. First paint is that of the landmarks,
after the last byte that it needs; a search while one types is counted from the last key to its results; a zoom step of
the map costs the browser's main thread the processor time that its own counter says. Vectors are made up; the queries
are embedded by the real model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from playwright.async_api import Page, async_playwright
from rich.console import Console
from rich.table import Table

from benchmarks.patrol.made_up_store import SCOPE, open_store
from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.model import EmbeddingModelName
from madeleine.server.background.loops import PatrolEventBroadcast
from madeleine.server.settings.settings import Settings
from madeleine.server.ui.serve import serve_web_ui
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.server.wiring.open_memory import OpenedMemoryStore

RESULTS = Path(__file__).parent / "results"
WAIT_MILLISECONDS = 120_000
KEY_MILLISECONDS = 70
ZOOM_STEPS = 60
QUERIES = ("where did we store the boat", "who repaired the old clock", "what did Grace say about the garden")
# The page's policy forbids to make functions of texts, as Playwright's `wait_for_function` does.
_PAINTED = """async () => {
    const at = async (name) => {
        while (!performance.getEntriesByName(name).length) await new Promise(requestAnimationFrame);
        return performance.getEntriesByName(name)[0].startTime;
    };
    return {data: await at("map data"), painted: await at("plot painted"), whole: await at("map is whole")};
}"""
_SHOWN = """async (words) => {
    const isShown = (found) => found?.dataset.words === words && found.ariaBusy === "false";
    while (!isShown(document.querySelector("#search"))) await new Promise(requestAnimationFrame);
}"""
_ZOOM = """async (steps) => {
    const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect();
    for (let step = 0; step < steps; step++) {
        const event = {deltaY: step < steps / 2 ? -120 : 120, clientX: box.x + box.width / 3, clientY: box.y + box.height / 3};
        canvas.dispatchEvent(new WheelEvent("wheel", {...event, cancelable: true, bubbles: true}));
        await new Promise(requestAnimationFrame);
    }
}"""  # noqa: E501


async def first_paint(page: Page) -> dict[str, float]:
    """Milliseconds: from the request to the data of the first points, from these to their paint, and from the request
    until all are drawn."""
    began = await page.evaluate("() => { const at = performance.now(); location.hash = '#/map'; return at; }")
    times = await page.evaluate(_PAINTED)
    return {
        "map_first_data_ms": times["data"] - began,
        "map_first_paint_after_data_ms": times["painted"] - times["data"],
        "map_all_drawn_ms": times["whole"] - began,
    }


async def zoom(page: Page) -> dict[str, float]:
    """Milliseconds of processor time of the main thread for a zoom step."""
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    async def busy_seconds() -> float:
        metrics = (await devtools.send("Performance.getMetrics"))["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))

    await page.evaluate(_ZOOM, 4)
    before = await busy_seconds()
    await page.evaluate(_ZOOM, ZOOM_STEPS)
    return {"zoom_step_main_thread_cpu_ms": (await busy_seconds() - before) / ZOOM_STEPS * 1_000}


async def typed_search(page: Page) -> dict[str, float]:
    """Milliseconds from the last key to its results; the median of the queries."""
    times = []
    for query in QUERIES:
        field = page.locator("#search-words")
        await field.fill("")
        await field.press_sequentially(query, delay=KEY_MILLISECONDS)
        began = await page.evaluate("performance.now()")
        await page.evaluate(_SHOWN, query)
        times.append(await page.evaluate("performance.now()") - began)
    return {"search_after_last_key_ms": median(times)}


async def measure(folder: Path, memories: int) -> dict[str, float]:
    settings = Settings(data_dir=folder / "data", being=SCOPE.being_id)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    real = DenseEmbedder(EmbeddingModelName(PACKAGED_MODEL_NAME), folder / "models")
    async with (
        LanguageModelPool(settings) as models,
        open_store(folder / "data", memories, idle_nights=60, real=real) as memory,
        async_playwright() as playwright,
    ):

        async def opened() -> OpenedMemoryStore:
            return memory

        async with serve_web_ui(settings, opened, models, PatrolEventBroadcast()) as link:
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = await browser.new_page(viewport={"width": 1280, "height": 860})
            page.set_default_timeout(WAIT_MILLISECONDS)
            await page.goto(link)
            await page.locator("main h1").wait_for()
            figures = await first_paint(page) | await zoom(page) | await typed_search(page)
            await browser.close()
    return {name: round(value, 1) for name, value in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=50_000)
    parser.add_argument("--record", action="store_true", help="write results/page.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures: dict[str, Any] = asyncio.run(measure(Path(folder), arguments.memories))
    table = Table("figure", "value", title=f"The page with {arguments.memories:,} memories")
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), f"{value:,.1f}")
    Console(width=100).print(table)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        content = {"memories": arguments.memories} | figures
        (RESULTS / "page.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
