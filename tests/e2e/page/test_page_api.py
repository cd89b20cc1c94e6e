"""The page's server: who is let in, whose memory is shown, and that to look at a memory does not use it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.language_model import ModelCallCost
from madeleine.memory.model import BeingId, Memory, RunId, Scene, Scope
from madeleine.server.background.loops import PatrolEventBroadcast
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.settings import Settings
from madeleine.server.ui import memory_map, projection
from madeleine.server.ui.app import WEB_UI_DATA_ENDPOINT_BY_PATH
from madeleine.server.ui.serve import serve_web_ui
from madeleine.server.ui.sessions import LOGIN_LINK_VALIDITY_SECONDS, WebUiSessions
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from tests.doubles import WordEmbedder
from tests.e2e.http.http_serving import bearer, serving

JSON = {"content-type": "application/json"}
ADA, BOB = Scope(BeingId("ada"), "an agent"), Scope(BeingId("bob"), "an agent")
PATHS = [path.replace("{id}", "m1") for path in (*WEB_UI_DATA_ENDPOINT_BY_PATH, "map")]


@dataclass(frozen=True, slots=True)
class OpenPage:
    memory: OpenedMemoryStore
    link: str

    @property
    def url(self) -> str:
        return self.link.partition("ui/")[0]

    @property
    def token(self) -> str:
        return self.link.partition("#")[2]

    @asynccontextmanager
    async def browser(self, *, logged_in: bool = True) -> AsyncIterator[httpx.AsyncClient]:
        async with httpx.AsyncClient(base_url=f"{self.url}ui/", timeout=30) as client:
            if logged_in:
                assert (await client.post("api/login", json={"token": self.token})).status_code == 200
            yield client

    async def store(self, scope: Scope, text: str, **fields: Any) -> Memory:
        [stored] = await self.memory.use_cases.store(scope, [NewScene(scene=Scene(action=text), **fields)])
        return stored.memory


@asynccontextmanager
async def open_page(folder: Path, **settings: Any) -> AsyncIterator[OpenPage]:
    wanted = Settings.model_validate({"data_dir": folder / "data", "being": "ada"} | settings)
    async with LanguageModelPool(wanted) as models, open_memory_store(wanted, embedder=WordEmbedder()) as memory:

        async def opened() -> OpenedMemoryStore:
            return memory

        async with serve_web_ui(wanted, opened, models, PatrolEventBroadcast()) as link:
            yield OpenPage(memory, link)


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[OpenPage]:
    async with open_page(tmp_path) as opened:
        yield opened


async def call(client: httpx.AsyncClient, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.post(f"api/tools/{tool}", json=arguments)
    assert answer.status_code == 200, answer.text
    content = answer.json()
    assert isinstance(content, dict)
    return content


async def test_without_a_session_nothing_is_shown_and_nothing_done(page: OpenPage) -> None:
    await page.store(ADA, "Grace planted a pear tree")
    async with page.browser(logged_in=False) as stranger:
        refused = [await stranger.get(f"api/{path}") for path in [*PATHS, "events"]]
        refused += [await stranger.post("api/tools/recall", json={"query": "pear"})]
        refused += [await stranger.post("api/login", json={"token": guess}) for guess in ("", "x" * 43, None, ["a"])]
        files = await stranger.get("")
    assert {answer.status_code for answer in refused} == {401}
    assert not any("pear" in answer.text for answer in refused)
    assert files.status_code == 200


async def test_a_link_opens_the_page_once_and_not_for_long(page: OpenPage) -> None:
    async with page.browser() as ada, page.browser(logged_in=False) as second:
        assert (await second.post("api/login", json={"token": page.token})).status_code == 401
        cookie = (await second.get("")).headers.get("set-cookie")
        assert cookie is None
        assert (await ada.get("api/about")).json()["being"] == "ada"
        assert (await ada.post("api/logout", json={})).status_code == 200
        assert (await ada.get("api/about")).status_code == 401
    now = 0.0
    sessions = WebUiSessions(lambda: now)
    token = sessions.new_link_token(Caller(BeingId("ada")))
    now = LOGIN_LINK_VALIDITY_SECONDS + 1
    assert sessions.redeem_link_token(token) is None


async def test_the_cookie_is_no_programs_and_no_other_pages(page: OpenPage) -> None:
    async with page.browser(logged_in=False) as client:
        cookie = (await client.post("api/login", json={"token": page.token})).headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/ui/"} <= {part.strip() for part in cookie.split(";")}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 403),
        ({"host": "evil.example"}, 421),
    ],
)
async def test_another_page_cannot_speak_for_who_is_logged_in(
    page: OpenPage, headers: dict[str, str], status: int
) -> None:
    async with page.browser() as ada:
        change = await ada.post("api/tools/store", content='{"text": "a forgery"}', headers=JSON | headers)
        assert change.status_code == status
        if "content-type" not in headers:
            assert (await ada.get("api/memories", headers=headers)).status_code == status
        assert (await ada.get("api/memories")).json()["id"] == []


async def test_no_script_but_the_pages_own_may_run_and_no_other_file_is_sent(page: OpenPage) -> None:
    async with page.browser() as ada:
        for path in ("", "main.js", "api/about", "no-such-file"):
            headers = (await ada.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
        for path in ("..%2fapp.py", "%2e%2e/app.py", "views", "/etc/passwd"):
            assert (await ada.get(path)).status_code == 404
        etag = (await ada.get("main.js")).headers["etag"]
        assert (await ada.get("main.js", headers={"if-none-match": etag})).status_code == 304


async def test_no_being_sees_anothers_memory(page: OpenPage) -> None:
    """Spec P1, on every path of the page."""
    await page.store(ADA, "Grace planted a pear tree")
    secret = await page.store(BOB, "Bob hid the silver key", lesson="the silver key is safe")
    use = page.memory.use_cases
    report = await use.patrol(BOB)
    async with page.browser() as ada:
        answers = [
            await ada.get(f"api/{path.replace('{id}', each)}")
            for path in (*WEB_UI_DATA_ENDPOINT_BY_PATH, "map")
            for each in (secret.id, "m2")
        ]
        answers += [await ada.get(f"api/run/{report.run_id}"), await ada.get("api/audit?event=store")]
        for tool, arguments in {
            "recall": {"query": "the silver key", "format": "memories"},
            "search_memory": {"query": "silver"},
            "recall_memory": {"ids": [secret.id]},
            "update_memory": {"id": secret.id, "text": "changed"},
            "forget": {"ids": [secret.id]},
            "run_patrol": {"undo": report.run_id},
        }.items():
            answers.append(await ada.post(f"api/tools/{tool}", json=arguments))
        assert (await ada.get("api/memories")).json()["id"] == ["m1"]
    assert not [answer.request.url for answer in answers if "hid the silver" in answer.text or "is safe" in answer.text]
    [kept] = await page.memory.ledger.recall.memories_with_ids(BOB, [secret.id])
    assert kept == secret or kept.scene == secret.scene


async def blocks_of_map(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (await client.get("api/map")).text.splitlines()]


async def test_the_map_comes_in_parts_and_stays_where_it_lay(page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "MAX_MEMORIES_LAID_OUT_BY_TSNE", 12)
    monkeypatch.setattr(memory_map, "MEMORIES_PER_SEMANTIC_MAP_BLOCK", 10)
    async with page.browser() as ada:
        assert await blocks_of_map(ada) == [{"total": 0}]
        for number in range(30):
            await page.store(ADA, f"Grace painted boat {number} of the harbour {number % 3}")
        total, *blocks = await blocks_of_map(ada)
        assert (total, [len(block["seq"]) for block in blocks]) == ({"total": 30}, [12, 10, 8])
        places = {
            seq: place for block in blocks for seq, *place in zip(block["seq"], block["x"], block["y"], strict=True)
        }
        assert len(places) == 30
        assert all(-1 <= coordinate <= 1 for place in places.values() for coordinate in place)
        await page.store(ADA, "Tom tuned a piano")
        [_, landmarks, *_] = await blocks_of_map(ada)
        again = zip(landmarks["seq"], landmarks["x"], landmarks["y"], strict=True)
        assert all(places[seq] == place for seq, *place in again)


async def test_the_past_is_what_was_true_then_and_what_had_been_recorded(page: OpenPage) -> None:
    use = page.memory.use_cases
    await page.memory.ledger.patrols.record_cost(
        ADA,
        RunId("a run"),
        ModelCallCost(purpose="diary", model="m", input_tokens=1, output_tokens=1, usd=None),
        at=utc_now(),
    )
    async with page.browser() as ada:
        await call(ada, "store", text="Grace drinks coffee", when="2020-01-01")
        await call(ada, "update_memory", id="m1", text="Grace drinks tea", when="2021-01-05")
        await use.patrol(ADA)
        today, yesterday = utc_now().date().isoformat(), (utc_now() - timedelta(days=1)).date().isoformat()

        async def seen(path: str, as_of: str) -> dict[str, Any]:
            content: dict[str, Any] = (await ada.get(f"api/{path}", params={"as_of": as_of})).json()
            return content

        counts = [(await seen("start", date))["counts"] for date in ("2019", "2020-06", today)]
        assert [(count["true"], count["stored"], count["superseded"], count["later"]) for count in counts] == [
            (0, 0, 0, 2),
            (1, 0, 0, 1),
            (1, 2, 1, 0),
        ]
        for path, records in {
            "start": "changes",
            "audit": "entries",
            "runs": "runs",
            "costs": "costs",
            "memory/m1": "audit",
        }.items():
            assert (await seen(path, yesterday))[records] == [], path
            assert (await seen(path, today))[records] != [], path
        assert (await ada.get("api/audit?as_of=soon")).status_code == 400


async def test_to_look_at_a_memory_does_not_use_it(page: OpenPage) -> None:
    memory = await page.store(ADA, "Grace planted a pear tree")
    async with page.browser() as ada:
        await call(ada, "recall", query="pear tree", format="memories", details=True)
        await call(ada, "recall_memory", ids=[memory.short_id])
        await ada.get(f"api/memory/{memory.short_id}")
    await page.memory.ledger.activations.flush()
    [seen] = await page.memory.ledger.recall.memories_with_ids(ADA, [memory.id])
    assert (seen.access_count, seen.reactivation_count, seen.last_activated) == (0, 0, None)


async def test_what_the_page_changes_is_changed_by_the_tools(page: OpenPage) -> None:
    memory = await page.store(ADA, "Grace drinks coffee")
    async with page.browser() as ada:
        await call(ada, "update_memory", id="m1", text="Grace drinks tea", when="2026-01-05")
        outlines = (await ada.get("api/memories")).json()
        assert outlines["truth"] == ["superseded", "current"]
        shown = (await ada.get("api/memory/m1")).json()
        assert [entry["event"] for entry in shown["audit"]] == ["supersede", "store"]
        refused = await ada.post("api/tools/update_memory", json={"id": "m99", "text": "x"})
        assert refused.status_code == 400
        assert "m99" in refused.json()["error"]
        assert (await call(ada, "forget", ids=["m1"]))["erased"] == ["m1"]
        assert (await ada.post("api/tools/no_such_tool", json={})).status_code == 403
        assert (await ada.post("api/tools/recall", content="[1]", headers=JSON)).status_code == 400
    assert await page.memory.ledger.recall.memories_with_ids(ADA, [memory.id]) == []


async def test_a_run_is_shown_as_what_it_changed_and_can_be_undone(page: OpenPage) -> None:
    for number in range(4):
        await page.store(ADA, f"Grace painted the harbour {number} times")
    async with page.browser() as ada:
        run_id = (await call(ada, "run_patrol"))["run_id"]
        run = (await ada.get(f"api/run/{run_id}")).json()
        assert run["run"]["state"] == "finished"
        [cluster] = {
            field["after"]
            for change in run["changes"]
            if change["kind"] == "memory"
            for field in change["fields"]
            if field["name"] == "cluster_id"
        }
        assert cluster in {change["target"].get("name") for change in run["changes"]}
        assert (await call(ada, "run_patrol", undo=run_id))["undone"]
        assert (await ada.get(f"api/run/{run_id}")).json()["run"]["state"] == "undone"
        assert set((await ada.get("api/memories")).json()["cluster"]) == {""}


async def test_what_fades_next_is_foreseen_by_the_rule_of_fading(page: OpenPage) -> None:
    await page.store(ADA, "a bus passed", importance=0.06)
    await page.store(ADA, "the wedding of Grace and Tom", importance=0.95)
    async with page.browser() as ada:
        fading = (await ada.get("api/fading")).json()
    # 30 × ln(0.06 / 0.05) = 5.5
    assert [(memory["id"], memory["left"]) for memory in fading["soon"]] == [("m1", 6)]


async def test_costs_are_told_by_day_and_purpose(page: OpenPage) -> None:
    for scope, tokens in ((ADA, 100), (ADA, 50), (BOB, 7_000)):
        cost = ModelCallCost(purpose="diary", model="some model", input_tokens=tokens, output_tokens=1, usd=None)
        await page.memory.ledger.patrols.record_cost(scope, RunId("a run"), cost, at=utc_now())
    async with page.browser() as ada:
        [cost_of_day] = (await ada.get("api/costs")).json()["costs"]
    assert cost_of_day == {
        **{"day": utc_now().date().isoformat(), "purpose": "diary", "model": "some model"},
        **{"calls": 2, "input_tokens": 150, "output_tokens": 2, "usd": None},
    }


async def test_what_an_agent_does_appears_while_one_looks(page: OpenPage) -> None:
    async with page.browser() as ada, ada.stream("GET", "api/events") as stream:
        lines = stream.aiter_lines()
        await anext(lines)
        await page.store(ADA, "Grace planted a pear tree")
        await page.store(BOB, "Bob hid the silver key")
        async with asyncio.timeout(20):
            event = await anext(json.loads(line[5:]) async for line in lines if line.startswith("data:"))
    assert event["type"] == "changes"
    assert [memory["text"] for entry in event["changes"] for memory in entry["memories"]] == [
        "Grace planted a pear tree"
    ]


async def test_a_page_that_may_only_read_changes_nothing(tmp_path: Path) -> None:
    async with open_page(tmp_path, read_only=True) as page:
        await page.store(ADA, "Grace planted a pear tree")
        async with page.browser() as ada:
            assert (await ada.get("api/about")).json()["rights"] == ["read"]
            assert (await call(ada, "search_memory", query="pear"))["hits"]
            for tool in ("store", "update_memory", "forget", "run_patrol", "profile"):
                assert (await ada.post(f"api/tools/{tool}", json={"ids": ["m1"]})).status_code == 403


async def test_over_http_a_token_opens_the_page_as_long_as_it_is_valid(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as served, served.browser() as client:
        # Programs of this machine need no token before the first; a page does.
        assert (await client.get("/ui/api/about")).status_code == 401
        assert (await client.post("/ui/api/login", json={})).status_code == 401
        token = await served.token("grace", role="agent")
        wrong = bearer(token[:-4] + "AAAA")
        assert (await client.post("/ui/api/login", json={}, headers=wrong)).status_code == 401
        assert (await client.get("/ui/api/about")).json()["login"] == "token"
        assert (await client.post("/ui/api/login", json={}, headers=bearer(token))).status_code == 200
        about = (await client.get("/ui/api/about")).json()
        assert (about["being"], about["rights"]) == ("grace", ["maintain", "read", "write"])
        assert (await client.post("/ui/api/tools/store", json={"text": "Grace sings"})).status_code == 200
        assert (await client.post("/ui/api/tools/forget", json={"ids": ["m1"]})).status_code in (400, 403)
        assert (await client.get("/ui/api/memories")).json()["id"] == ["m1"]
        foreign = {"origin": "https://evil.example"}
        assert (await client.get("/ui/api/about", headers=foreign)).status_code == 403
        await served.revoke(token)
        assert (await client.get("/ui/api/about")).status_code == 401
