"""The app in the chat (MCP Apps, 2026-01-26): its resource, and its page in the reference host's sandboxed frame."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from playwright.async_api import FrameLocator, Page, expect

from tests.e2e.clients.npm import NODE, output_of
from tests.e2e.page.browsing import SCREENSHOTS, Visitor, chromium
from tests.e2e.serving import connected

MAX_APP_BYTES = 60_000
PACKAGES = (
    "@modelcontextprotocol/ext-apps@2.0.4",
    "@modelcontextprotocol/client@^2.0.0",
    "@modelcontextprotocol/core@^2.0.0",
    "zod@^4.2.0",
    "esbuild@^0.25",
)
DEFAULT_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "media-src 'self' data:; connect-src 'none'"
)
"""That of the specification for a resource which declares none."""
HOST = """
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
window.openApp = (html, tool, theme) => new Promise(async (resolve) => {
    const frame = document.createElement("iframe");
    Object.assign(frame.style, { width: "640px", height: "900px", border: "0" });
    frame.setAttribute("sandbox", "allow-scripts");
    frame.srcdoc = html;
    const can = { serverTools: {}, updateModelContext: { text: {} } };
    const bridge = new AppBridge(null, { name: "reference", version: "1" }, can,
        { hostContext: { theme, locale: "en", toolInfo: { tool: { name: tool, inputSchema: { type: "object" } } } } });
    window.told = [];
    window.sizes = [];
    bridge.oncalltool = (params) => window.callTool(params.name, params.arguments ?? {});
    bridge.onupdatemodelcontext = async (params) => { window.told.push(params); return {}; };
    bridge.addEventListener?.("sizechange", (size) => window.sizes.push(size));
    bridge.oninitialized = () => resolve(true);
    document.body.append(frame);
    window.bridge = bridge;
    await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
});
window.giveResult = (result) => window.bridge.sendToolResult(result);
window.changeTheme = (theme) => window.bridge.setHostContext({ theme });
"""


async def app_of(client: Client, tool: str) -> tuple[str, str]:
    """The URI that the tool names, and the page that it is."""
    [listed] = [each for each in (await client.list_tools()).tools if each.name == tool]
    assert listed.meta
    uri = listed.meta["ui"]["resourceUri"]
    [content] = (await client.read_resource(uri)).contents
    assert content.mime_type == "text/html;profile=mcp-app"
    return uri, str(getattr(content, "text", ""))


async def test_the_tools_that_are_looked_at_name_one_small_page_that_needs_nothing(tmp_path: Path) -> None:
    async with connected(tmp_path / "data") as client:
        pages = {
            tool: await app_of(client, tool) for tool in ("recall", "recall_memory", "search_memory", "run_patrol")
        }
        others = [tool for tool in (await client.list_tools()).tools if tool.name not in pages]
    [(uri, html)] = set(pages.values())
    assert uri.startswith("ui://madeleine/")
    assert len(html.encode()) <= MAX_APP_BYTES
    assert "http://" not in html
    assert "https://" not in html
    assert not [tool.name for tool in others if tool.meta]


@asynccontextmanager
async def reference_host(folder: Path, client: Client, *, tool: str, theme: str) -> AsyncIterator[tuple[Page, Visitor]]:
    """A page with the app of a tool in a sandboxed frame, by the reference bridge; the tools are the server's."""
    _, html = await app_of(client, tool)
    html = html.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{DEFAULT_POLICY}">', 1)

    async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        return (await client.call_tool(name, arguments)).model_dump(by_alias=True, exclude_none=True, mode="json")

    async with chromium() as browser:
        page = await browser.new_page()
        page.set_default_timeout(15_000)
        visitor = Visitor(page)
        await page.expose_function("callTool", call_tool)
        await page.set_content("<!doctype html><title>host</title><body></body>")
        await page.add_script_tag(content=(folder / "host.js").read_text(encoding="utf-8"))
        assert await page.evaluate("([html, tool, theme]) => openApp(html, tool, theme)", [html, tool, theme])
        yield page, visitor


async def show(page: Page, client: Client, tool: str, **arguments: Any) -> FrameLocator:
    result = (await client.call_tool(tool, arguments)).model_dump(by_alias=True, exclude_none=True, mode="json")
    await page.evaluate("result => giveResult(result)", result)
    return page.frame_locator("iframe")


@pytest.fixture(scope="module")
def bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bridge")


async def bundled_host(folder: Path) -> Path:
    """The reference bridge for a browser."""
    if not (folder / "host.js").exists():
        (folder / "home").mkdir(exist_ok=True)
        (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
        (folder / "entry.js").write_text(HOST, encoding="utf-8")
        npm = [str(NODE / "npm"), "install", "--no-audit", "--no-fund", "--legacy-peer-deps", *PACKAGES]
        bundle = [str(NODE / "npx"), "esbuild", "entry.js", "--bundle", "--format=iife", "--outfile=host.js"]
        for command in (npm, bundle):
            code, output = await output_of(command, home=folder / "home", cwd=folder)
            assert code == 0, output
    return folder


@pytest.mark.slow
async def test_the_app_works_in_the_reference_host(tmp_path: Path, bundle_folder: Path) -> None:
    """Handshake, theme, tool calls, hostile text, no network."""
    folder = await bundled_host(bundle_folder)
    async with connected(tmp_path / "data") as client:
        for text in (
            "Grace prefers coffee to tea",
            "<script>parent.ran = 1</script><img src=https://evil.example/x onerror='window.ran = 2'> Grace",
            "Grace planted a pear tree",
        ):
            await client.call_tool("store", {"text": text})
        await client.call_tool("update_memory", {"id": "m1", "text": "Grace drinks tea", "when": "2026-01-05"})
        async with reference_host(folder, client, tool="search_memory", theme="dark") as (page, visitor):
            requests: list[str] = []
            page.on("request", lambda request: requests.append(request.url))
            app = await show(page, client, "search_memory", query="Grace")
            await expect(app.locator("html")).to_have_attribute("data-theme", "dark")
            await page.evaluate("changeTheme('light')")
            await expect(app.locator("html")).to_have_attribute("data-theme", "light")
            await expect(app.locator("li.card")).to_have_count(3)
            hostile = app.locator("li.card", has_text="parent.ran")
            await expect(hostile).to_contain_text("<img src=https://evil.example/x")
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            await page.screenshot(path=SCREENSHOTS / "app-search.png")

            tree = app.locator("li.card", has_text="pear tree")
            await tree.get_by_role("button", name="Pin").click()
            await expect(tree.get_by_role("button", name="Unpin")).to_be_visible()
            await tree.get_by_role("button", name="Correct").click()
            await tree.get_by_label("What it says").fill("Grace planted two pear trees")
            await tree.get_by_role("button", name="Save").click()
            await expect(app.locator("li.card", has_text="two pear trees")).to_contain_text("Corrected.")
            tea = app.locator("li.card", has_text="Grace drinks tea")
            await tea.get_by_role("button", name="History").click()
            await expect(tea).to_contain_text("superseded: Grace prefers coffee to tea")
            await hostile.get_by_role("button", name="Forget …").click()
            await hostile.get_by_role("button", name="Keep it").click()
            await hostile.get_by_role("button", name="Forget …").click()
            await hostile.get_by_role("button", name="Erase for good").click()
            await expect(app.get_by_text("m2 is forgotten.")).to_be_visible()
            told = json.dumps(await page.evaluate("window.told.at(-1)"))
            assert "The person erased m2." in told
            assert await page.evaluate("window.ran ?? null") is None
            assert [url for url in requests if "evil" in url] == []
            assert visitor.complaints == []
        found = await client.call_tool("search_memory", {"query": "evil"})
        assert found.structured_content == {"hits": []}


@pytest.mark.slow
async def test_the_app_shows_each_kind_of_answer(tmp_path: Path, bundle_folder: Path) -> None:
    folder = await bundled_host(bundle_folder)
    async with connected(tmp_path / "data") as client:
        await client.call_tool("store", {"text": "Grace prefers coffee to tea"})
        await client.call_tool("update_memory", {"id": "m1", "text": "Grace drinks tea", "when": "2026-01-05"})
        async with reference_host(folder, client, tool="run_patrol", theme="light") as (page, visitor):
            app = await show(page, client, "run_patrol")
            await app.get_by_role("button", name="Undo this patrol").click()
            await expect(app.get_by_text("Undone:")).to_be_visible()
            app = await show(page, client, "recall", query="What does Grace drink?", format="memories")
            await expect(app.locator("li.card").first).to_contain_text("Grace drinks tea")
            await page.screenshot(path=SCREENSHOTS / "app-recall.png")
            app = await show(page, client, "recall_memory", ids=["m1"])
            await expect(app.locator("li.card").first).to_contain_text("now: Grace drinks tea")
            app = await show(page, client, "recall_memory", ids=["m1"], cluster_id="both")
            await expect(app.locator("main")).to_contain_text("Give ids or cluster_id, not both.")
            assert visitor.complaints == []
