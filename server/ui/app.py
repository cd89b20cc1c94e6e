"""The routes of the page: its files, its data, the tools by which it changes something, and live events."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from madeleine.memory.errors import InvalidInput, MadeleineError
from madeleine.memory.language_model import LanguageModel
from madeleine.memory.model import RunId
from madeleine.memory.text.structure import escape_foreign_markup_in_json
from madeleine.server.background.loops import PatrolEventBroadcast
from madeleine.server.http.authentication import CALLER_ASGI_SCOPE_KEY
from madeleine.server.http.endpoint import AsgiApplication
from madeleine.server.settings.settings import Settings
from madeleine.server.ui.guard import (
    WEB_UI_PATH,
    refusal_response,
    session_cookie_name,
    session_secret_of_request,
    set_session_cookie,
    with_same_origin_check,
    with_security_headers,
)
from madeleine.server.ui.live import live_web_ui_events
from madeleine.server.ui.memory_map import SemanticMapCache
from madeleine.server.ui.reading import WebUiDataReader
from madeleine.server.ui.sessions import WEB_UI_SESSION_SECONDS, WebUiSession, WebUiSessions
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.tools.reading import parse_as_of
from madeleine.tools.replies import tool_result_of_crash
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, choose_tools, make_all_tools

if TYPE_CHECKING:
    from madeleine.server.wiring.open_memory import OpenedMemoryStore

WEB_UI_API_PATH = f"{WEB_UI_PATH}api"
WEB_UI_STATIC_FOLDER = Path(__file__).parent / "static"
MAX_PATROL_RUNS_SHOWN = 200
MAX_AUDIT_ENTRIES_PER_PAGE = 500
AsgiMiddleware = Callable[[ASGIApp], ASGIApp]
"""Passes a request on with its caller in the ASGI scope, or refuses it."""
WebUiDataEndpoint = Callable[[WebUiDataReader, Request], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class WebUiServices:
    """What all requests share. `language_model` is for patrols that are run from the page."""

    sessions: WebUiSessions
    opened: Callable[[], Awaitable[OpenedMemoryStore]]
    toolset: Toolset
    patrol_events: PatrolEventBroadcast
    is_closing: Callable[[], bool]
    language_model: Callable[[], AbstractAsyncContextManager[LanguageModel | None]]
    memory_maps: SemanticMapCache = field(default_factory=SemanticMapCache)
    files: dict[str, StaticFile] = field(default_factory=lambda: load_static_files(WEB_UI_STATIC_FOLDER))


def build_web_ui_services(
    settings: Settings,
    opened: Callable[[], Awaitable[OpenedMemoryStore]],
    models: LanguageModelPool,
    patrol_events: PatrolEventBroadcast,
    *,
    sessions: WebUiSessions | None = None,
    is_closing: Callable[[], bool] = lambda: False,
) -> WebUiServices:
    """With all tools but those that the settings exclude: the page needs them, listed or not."""
    tools = choose_tools(
        make_all_tools(random.SystemRandom()), exclude=settings.exclude_tools, read_only=settings.read_only
    )
    return WebUiServices(
        sessions or WebUiSessions(),
        opened,
        Toolset(tools, max_text_chars=settings.max_text_chars),
        patrol_events,
        is_closing,
        lambda: models.lease_model_for_client(settings),
    )


def web_ui_routes(
    page: WebUiServices, guard: AsgiMiddleware, stream_guard: AsgiMiddleware, login: ASGIApp
) -> list[BaseRoute]:
    """`login` answers the request that opens a session; `stream_guard` guards what stays open."""

    def protected(endpoint: Callable[[Request], Awaitable[Response]], guard: AsgiMiddleware = guard) -> ASGIApp:
        return AsgiApplication(with_security_headers(with_same_origin_check(guard(_asgi_app_of_endpoint(endpoint)))))

    def reading(answer: WebUiDataEndpoint) -> ASGIApp:
        return protected(partial(_answer_data_request, page, answer))

    return [
        Route(WEB_UI_PATH.rstrip("/"), RedirectResponse(WEB_UI_PATH), methods=["GET"]),
        Route(
            f"{WEB_UI_API_PATH}/login",
            AsgiApplication(with_security_headers(with_same_origin_check(login))),
            methods=["POST"],
        ),
        Route(f"{WEB_UI_API_PATH}/logout", protected(partial(_log_out, page)), methods=["POST"]),
        Route(f"{WEB_UI_API_PATH}/tools/{{name}}", protected(partial(_call_tool, page)), methods=["POST"]),
        Route(
            f"{WEB_UI_API_PATH}/events", protected(partial(_stream_live_events, page), stream_guard), methods=["GET"]
        ),
        Route(f"{WEB_UI_API_PATH}/map", protected(partial(_stream_semantic_map, page)), methods=["GET"]),
        *(
            Route(f"{WEB_UI_API_PATH}/{path}", reading(answer), methods=["GET"])
            for path, answer in WEB_UI_DATA_ENDPOINT_BY_PATH.items()
        ),
        Route(
            f"{WEB_UI_PATH}{{path:path}}",
            AsgiApplication(with_security_headers(_asgi_app_of_endpoint(partial(_send_static_file, page.files)))),
            methods=["GET"],
        ),
    ]


# --- data ---------------------------------------------------------------------------------------------------------


def _number_from_query_parameter(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, "")
    if text and not (text.isascii() and text.isdigit()):
        raise InvalidInput(f"{name}: {text[:20]!r} is not a number.")
    return min(int(text), most) if text else default


async def _caller_rights_endpoint(reader: WebUiDataReader, request: Request) -> dict[str, Any]:
    return reader.caller_rights_and_fading_constants()


async def _memory_provenance_endpoint(reader: WebUiDataReader, request: Request) -> dict[str, Any]:
    shown = request.path_params["id"]
    return await reader.memory_provenance_as_json(
        (await reader.memory.use_cases.short_ids.full_memory_id_by_given_id(reader.scope, [shown]))[shown]
    )


async def _patrol_run_endpoint(reader: WebUiDataReader, request: Request) -> dict[str, Any]:
    run = await reader.memory.use_cases.short_ids.full_id(reader.scope, "run", request.path_params["id"])
    return await reader.patrol_run_with_changes(RunId(run))


WEB_UI_DATA_ENDPOINT_BY_PATH: dict[str, WebUiDataEndpoint] = {
    "about": _caller_rights_endpoint,
    "start": lambda reader, _: reader.overview(),
    "memories": lambda reader, _: reader.all_memory_outlines_by_column(),
    "memory/{id}": _memory_provenance_endpoint,
    "runs": lambda reader, request: reader.patrol_runs(
        _number_from_query_parameter(request, "limit", 50, MAX_PATROL_RUNS_SHOWN)
    ),
    "run/{id}": _patrol_run_endpoint,
    "fading": lambda reader, _: reader.fading_forecast_as_json(),
    "conversations": lambda reader, _: reader.conversations(),
    "conversation": lambda reader, request: reader.conversation(
        request.query_params.get("session", ""), _number_from_query_parameter(request, "start", 0, 2**31)
    ),
    "written": lambda reader, _: reader.diary_notes_and_lessons(),
    "costs": lambda reader, _: reader.language_model_costs(utc_now()),
    "audit": lambda reader, request: reader.audit_entries(
        before=_number_from_query_parameter(request, "before", 0, 2**62),
        limit=_number_from_query_parameter(request, "limit", 100, MAX_AUDIT_ENTRIES_PER_PAGE),
        event=request.query_params.get("event", ""),
    ),
}


async def _make_data_reader_for_request(
    page: WebUiServices, request: Request, as_of: datetime | None = None
) -> WebUiDataReader:
    return WebUiDataReader(await page.opened(), request.scope[CALLER_ASGI_SCOPE_KEY], page.memory_maps, as_of)


async def _answer_data_request(page: WebUiServices, answer: WebUiDataEndpoint, request: Request) -> Response:
    try:
        as_of = parse_as_of(request.query_params.get("as_of", ""))
        content = await answer(await _make_data_reader_for_request(page, request, as_of), request)
    except MadeleineError as error:
        return refusal_response(400 if isinstance(error, InvalidInput) else 503, str(error))
    return JSONResponse(content)


async def _call_tool(page: WebUiServices, request: Request) -> Response:
    """The tool itself, as any client calls it, with the rights of the caller."""
    name = request.path_params["name"]
    reader = await _make_data_reader_for_request(page, request)
    tools = page.toolset.for_caller(reader.caller.role, read_only=reader.caller.read_only)
    if name not in tools:
        return refusal_response(403, f"{name[:100]}: there is no such tool for you.")
    try:
        arguments = json.loads(await request.body())
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return refusal_response(400, "The arguments have to be a JSON object.")
    try:
        async with page.language_model() as language:
            call = ToolCallContext(reader.scope, reader.memory.use_cases, language_model=language)
            result = await tools.call_tool(name, arguments, call)
    except MadeleineError as error:
        return refusal_response(503, str(error))
    except Exception as error:  # as in Toolset.call_tool: the log has the traceback
        result = tool_result_of_crash(name, error)
    if result.is_error:
        return refusal_response(400, "".join(getattr(part, "text", "") for part in result.content))
    return JSONResponse(result.structured_content)


async def _stream_semantic_map(page: WebUiServices, request: Request) -> Response:
    reader = await _make_data_reader_for_request(page, request)

    async def lines() -> AsyncIterator[str]:
        async for block in reader.stream_semantic_map():
            yield f"{json.dumps(block)}\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


async def _stream_live_events(page: WebUiServices, request: Request) -> Response:
    reader = await _make_data_reader_for_request(page, request)

    async def lines() -> AsyncIterator[str]:
        async for event in live_web_ui_events(reader, page.patrol_events, page.is_closing):
            yield (
                f"data: {json.dumps(escape_foreign_markup_in_json(event), ensure_ascii=False)}\n\n"
                if event
                else ":\n\n"
            )

    return StreamingResponse(lines(), media_type="text/event-stream")


# --- sessions -----------------------------------------------------------------------------------------------------


def make_link_login_app(sessions: WebUiSessions) -> ASGIApp:
    """Opens a session for the token of a link, once."""

    async def log_in(request: Request) -> Response:
        try:
            token = json.loads((await request.body())[:1_000])["token"]
        except (ValueError, KeyError, TypeError, RecursionError):
            token = None
        secret = sessions.redeem_link_token(token) if isinstance(token, str) else None
        if secret is None:
            return refusal_response(
                401, "This link was used already, or is too old. Run `madeleine ui` again.", login="link"
            )
        return _response_setting_session_cookie(request, secret)

    return _asgi_app_of_endpoint(log_in)


def make_token_login_app(sessions: WebUiSessions) -> ASGIApp:
    """Opens a session for a bearer token that was let in before."""

    async def log_in(request: Request) -> Response:
        bearer = request.headers.get("authorization", "").partition(" ")[2].strip()
        if not bearer:
            return refusal_response(401, "A token opens this page.", login="token")
        return _response_setting_session_cookie(request, sessions.open(WebUiSession(bearer=bearer)))

    return _asgi_app_of_endpoint(log_in)


def _response_setting_session_cookie(request: Request, secret: str) -> Response:
    response = JSONResponse({})
    set_session_cookie(response, request.scope, secret, max_age=int(WEB_UI_SESSION_SECONDS))
    return response


async def _log_out(page: WebUiServices, request: Request) -> Response:
    page.sessions.close(session_secret_of_request(request.scope))
    response = JSONResponse({})
    response.delete_cookie(session_cookie_name(request.scope), path=WEB_UI_PATH)
    return response


# --- files --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StaticFile:
    content: bytes
    media_type: str
    etag: str


def load_static_files(folder: Path) -> dict[str, StaticFile]:
    """All files below the folder, by their path in it: nothing else is ever sent."""
    files = {}
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.relative_to(folder).as_posix()] = StaticFile(content, media_type, etag)
    return files


async def _send_static_file(files: dict[str, StaticFile], request: Request) -> Response:
    file = files.get(request.path_params["path"] or "index.html")
    if file is None:
        return refusal_response(404, "There is no such page.")
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


def _asgi_app_of_endpoint(endpoint: Callable[[Request], Awaitable[Response]]) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (await endpoint(Request(scope, receive)))(scope, receive, send)

    return app
