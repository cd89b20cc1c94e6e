"""The MCP server of the conformance suite: its tools, resources and prompts on the SDK's low-level server."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, get_args

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError

from madeleine.server.mcp.server import RequestContext as Context
from tests.conformance.asking import ASKING, PROMPT, PROMPT_ASKS, missing
from tests.conformance.tools import IMAGE, NO_ARGUMENTS, Answer, all_tools, embedded, image, text

NAME = "conformance"
TEMPLATE = "test://template/{id}/data"
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    PROMPT: (),
}


def contents(uri: str) -> types.TextResourceContents | types.BlobResourceContents:
    """Raises `MCPError` for a resource that is not there (SEP-2164)."""
    if uri == "test://static-binary":
        return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=IMAGE)
    if found := re.fullmatch(r"test://template/([^/]+)/data", uri):
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        return types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))
    known = {
        "test://static-text": "This is the content of the static text resource.",
        "test://watched-resource": "Watched resource content",
    }
    if uri not in known:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.TextResourceContents(uri=uri, mime_type="text/plain", text=known[uri])


def messages(name: str, arguments: Mapping[str, str]) -> list[types.PromptMessage]:
    match name:
        case "test_simple_prompt":
            content: list[types.ContentBlock] = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            content = [text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
            content = [resource, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            content = [image(), text("Please analyze the image above.")]
        case _:
            content = [text("The context is known now.")]
    return [types.PromptMessage(role="user", content=part) for part in content]


def conformance_server() -> Server[None]:
    bus = InMemorySubscriptionBus()
    tools = all_tools(bus) | {name: (NO_ARGUMENTS, run) for name, run in ASKING.items()}

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, description=f"For the scenario {name}", input_schema=dict(schema))
                for name, (schema, _) in tools.items()
            ]
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> Answer:
        if params.name not in tools:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r}")
        return await tools[params.name][1](context, params)

    async def list_resources(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        uris = ("test://static-text", "test://static-binary", "test://watched-resource")
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=uri, name=uri.rsplit("/", 1)[1], mime_type=contents(uri).mime_type) for uri in uris
            ]
        )

    async def list_templates(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(uri_template=TEMPLATE, name="template", mime_type="application/json")
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[contents(str(params.uri))])

    async def list_prompts(context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=name,
                    description=f"For the scenario {name}",
                    arguments=[types.PromptArgument(name=argument, required=True) for argument in arguments],
                )
                for name, arguments in ARGUMENTS.items()
            ]
        )

    async def get_prompt(
        context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        if params.name not in ARGUMENTS:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {params.name!r}")
        if params.name == PROMPT and missing(PROMPT_ASKS, params.input_responses):
            return types.InputRequiredResult(input_requests=PROMPT_ASKS)
        return types.GetPromptResult(messages=messages(params.name, params.arguments or {}))

    async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        return types.CompleteResult(completion=types.Completion(values=["paris", "park"], total=2, has_more=False))

    async def nothing(context: Context, params: Any) -> types.EmptyResult:
        return types.EmptyResult()

    server = Server[None](
        NAME,
        version="1",
        lifespan=no_lifespan,
        cache_hints={method: CacheHint(ttl_ms=60_000) for method in get_args(CacheableMethod)},
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=nothing,
    )
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return server


@asynccontextmanager
async def no_lifespan(_: Server[None]) -> AsyncIterator[None]:
    yield None
