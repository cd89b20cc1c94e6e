"""Prompts and resources, beside the tools: listed and read, over whatever transport serves them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from madeleine.memory.errors import InvalidInput, MadeleineError
from madeleine.memory.model import BeingId
from madeleine.tools import memory_context, resources
from madeleine.tools.arguments import printable
from madeleine.tools.replies import crash
from madeleine.tools.tool import Call

if TYPE_CHECKING:
    from madeleine.server.mcp.server import Context

T = TypeVar("T")


class Offered:
    """`being_of` says whose the connection is, `call_of` opens the memory for it."""

    def __init__(
        self,
        being_of: Callable[[Context], BeingId],
        call_of: Callable[[Context], Awaitable[Call]],
        *,
        max_text_chars: int,
    ) -> None:
        self._being_of = being_of
        self._call_of = call_of
        self._max_text_chars = max_text_chars

    def add_to(self, server: Server[None]) -> None:
        paginated = types.PaginatedRequestParams
        server.add_request_handler("prompts/list", paginated, self.list_prompts)
        server.add_request_handler("prompts/get", types.GetPromptRequestParams, self.get_prompt)
        server.add_request_handler("resources/list", paginated, self.list_resources)
        server.add_request_handler("resources/templates/list", paginated, self.list_templates)
        server.add_request_handler("resources/read", types.ReadResourceRequestParams, self.read_resource)

    async def list_prompts(self, context: Context, params: types.PaginatedRequestParams) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[memory_context.PROMPT])

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != memory_context.NAME:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {printable(params.name)[:100]!r}.")

        async def get(call: Call) -> types.GetPromptResult:
            return await memory_context.get(call, params.arguments or {}, max_text_chars=self._max_text_chars)

        return await self._done(params.name, context, get)

    async def list_resources(self, context: Context, params: types.PaginatedRequestParams) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=resources.of_being(self._being_of(context)))

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams
    ) -> types.ListResourceTemplatesResult:
        """Every resource there is, is listed."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        found = resources.named(params.uri, self._being_of(context))
        if found is None:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": printable(params.uri)})
        text = await self._done(f"{resources.SCHEME}://{found.name}", context, found.read)
        content = types.TextResourceContents(uri=params.uri, mime_type=found.mime_type, text=text)
        return types.ReadResourceResult(contents=[content])

    async def _done(self, what: str, context: Context, work: Callable[[Call], Awaitable[T]]) -> T:
        """As a tool's call: what was foreseen says what to do, no traceback reaches a client."""
        try:
            return await work(await self._call_of(context))
        except InvalidInput as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except MadeleineError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        except Exception as error:
            said = "".join(part.text for part in crash(what, error).content if isinstance(part, types.TextContent))
            raise MCPError(types.INTERNAL_ERROR, said) from error
