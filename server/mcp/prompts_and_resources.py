"""Prompts and resources, beside the tools: listed and read, over whatever transport serves them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from madeleine.memory.errors import InvalidInput, MadeleineError
from madeleine.server.mcp.caller import CallerOf, Context
from madeleine.tools.arguments import printable
from madeleine.tools.prompt_and_resources import (
    CONTEXT_PROMPT,
    RESOURCE_SCHEME,
    find_resource,
    get_context_prompt,
    resources_of_being,
)
from madeleine.tools.replies import crash
from madeleine.tools.tool import Call

T = TypeVar("T")


class PromptsAndResources:
    """`call_of` opens the memory for a connection."""

    def __init__(
        self,
        caller_of: CallerOf,
        call_of: Callable[[Context], Awaitable[Call]],
        *,
        max_text_chars: int,
    ) -> None:
        self._caller_of = caller_of
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
        return types.ListPromptsResult(prompts=[CONTEXT_PROMPT])

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != CONTEXT_PROMPT.name:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {printable(params.name)[:100]!r}.")

        async def get(call: Call) -> types.GetPromptResult:
            return await get_context_prompt(call, params.arguments or {}, max_text_chars=self._max_text_chars)

        return await self._run(params.name, context, get)

    async def list_resources(self, context: Context, params: types.PaginatedRequestParams) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=resources_of_being(self._caller_of(context).being_id))

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams
    ) -> types.ListResourceTemplatesResult:
        """None: every resource is listed."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        resource = find_resource(params.uri, self._caller_of(context).being_id)
        if resource is None:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": printable(params.uri)})
        text = await self._run(f"{RESOURCE_SCHEME}://{resource.name}", context, resource.read)
        content = types.TextResourceContents(uri=params.uri, mime_type=resource.mime_type, text=text)
        return types.ReadResourceResult(contents=[content])

    async def _run(self, name: str, context: Context, work: Callable[[Call], Awaitable[T]]) -> T:
        """As for a tool call: expected errors say what to do, no traceback reaches a client."""
        try:
            return await work(await self._call_of(context))
        except InvalidInput as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except MadeleineError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        except Exception as error:
            message = "".join(part.text for part in crash(name, error).content if isinstance(part, types.TextContent))
            raise MCPError(types.INTERNAL_ERROR, message) from error
