"""Who may use the page: its cookie, and requests of its own origin alone.

A browser sends a cookie with whatever a page of another port of this machine asks, for to it the two are one site. So
besides `SameSite`, each request has to come from the page itself.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.server.http.authentication import CALLER_ASGI_SCOPE_KEY
from madeleine.server.ui.sessions import WebUiSessions

WEB_UI_PATH = "/ui/"
WEB_UI_SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def session_cookie_name(scope: Scope) -> str:
    """One a port: a browser keeps the cookies of all ports of a host in one jar."""
    port = urlsplit(f"//{Headers(scope=scope).get('host', '')}").port
    return f"madeleine_ui_{port}" if port else "madeleine_ui"


def session_secret_of_request(scope: Scope) -> str:
    return HTTPConnection(scope).cookies.get(session_cookie_name(scope), "")


def set_session_cookie(response: Response, scope: Scope, secret: str, *, max_age: int) -> None:
    secure = scope.get("scheme") == "https" or Headers(scope=scope).get("x-forwarded-proto") == "https"
    response.set_cookie(
        session_cookie_name(scope),
        secret,
        max_age=max_age,
        path=WEB_UI_PATH,
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def with_security_headers(app: ASGIApp) -> ASGIApp:
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in WEB_UI_SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await app(scope, receive, send_with_headers)

    return serve


def with_same_origin_check(app: ASGIApp) -> ASGIApp:
    """403 for what another page asks. A change has to be JSON, which no form can send."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await (app if _is_same_origin_request(scope) else refusal_response(403, "Only the page itself may ask this."))(
            scope, receive, send
        )

    return serve


def _is_same_origin_request(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    origins = headers.getlist("origin")
    if any(urlsplit(origin).netloc != headers.get("host") for origin in origins):
        return False
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    return scope["method"] == "GET" or headers.get("content-type", "").startswith("application/json")


def session_required_app(app: ASGIApp, sessions: WebUiSessions) -> ASGIApp:
    """401 for a request without the cookie of an open session; with it, its caller."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        session = sessions.find(session_secret_of_request(scope))
        if session is None or session.caller is None:
            await refusal_response(401, "The link of `madeleine ui` opens this page, once.", login="link")(
                scope, receive, send
            )
            return
        scope[CALLER_ASGI_SCOPE_KEY] = session.caller
        await app(scope, receive, send)

    return serve


def app_with_bearer_token_from_session(app: ASGIApp, sessions: WebUiSessions) -> ASGIApp:
    """The token that the session was opened with stands in for the cookie: all that holds for tokens holds here."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if "authorization" not in Headers(scope=scope):
            session = sessions.find(session_secret_of_request(scope))
            if session is None or not session.bearer:
                await refusal_response(401, "A token opens this page.", login="token")(scope, receive, send)
                return
            # Whatever reads headers makes the scope's list anew: this is the last one.
            MutableHeaders(scope=scope)["authorization"] = f"Bearer {session.bearer}"
        await app(scope, receive, send)

    return serve


def refusal_response(status: int, message: str, **more: str) -> JSONResponse:
    return JSONResponse({"error": message, **more}, status_code=status)
