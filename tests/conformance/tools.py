"""The tools that the conformance suite calls, one function each, named and worded as its scenarios have them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

from madeleine.server.mcp.server import RequestContext

IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
PAUSE_SECONDS = 0.05

Answer = types.CallToolResult | types.InputRequiredResult
Run = Callable[[RequestContext, types.CallToolRequestParams], Awaitable[Answer]]
NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}


def text(content: str) -> types.TextContent:
    return types.TextContent(type="text", text=content)


def said(*content: types.ContentBlock) -> types.CallToolResult:
    return types.CallToolResult(content=list(content))


def embedded(uri: str, mime_type: str, content: str) -> types.EmbeddedResource:
    found = types.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return types.EmbeddedResource(type="resource", resource=found)


def fixed(answer: types.CallToolResult) -> Run:
    async def run(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
        return answer

    return run


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=IMAGE, mime_type="image/png")


async def with_logging(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log(context, message)
        await asyncio.sleep(PAUSE_SECONDS)
    return said(text("Tool with logging executed successfully"))


async def log(context: RequestContext, message: str) -> None:
    await context.session.send_log_message("info", message, related_request_id=context.request_id)


async def with_progress(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(PAUSE_SECONDS)
    return said(text("Tool with progress executed successfully"))


async def sampling(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
    prompt = str((params.arguments or {}).get("prompt", ""))
    asked = types.SamplingMessage(role="user", content=text(prompt))
    found = await context.session.create_message(
        messages=[asked], max_tokens=100, related_request_id=context.request_id
    )
    answered = found.content.text if isinstance(found.content, types.TextContent) else "no text"
    return said(text(f"LLM response: {answered}"))


def eliciting(properties: Mapping[str, Any], required: list[str]) -> Run:
    schema = {"type": "object", "properties": dict(properties), "required": required}

    async def run(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
        message = str((params.arguments or {}).get("message", "Please answer"))
        found = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
        return said(text(f"User response: action={found.action}, content={found.content or {}}"))

    return run


DEFAULTS: Mapping[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
ENUMS: Mapping[str, Any] = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


async def failing(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
    message = text("This tool intentionally returns an error for testing")
    return types.CallToolResult(content=[message], is_error=True)


async def reconnection(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
    """Closes the stream in the middle of the call; the client comes back for the rest (SEP-1699)."""
    await log(context, "Before disconnect")
    if context.close_sse_stream:
        await context.close_sse_stream()
    await asyncio.sleep(4 * PAUSE_SECONDS)
    await log(context, "After reconnect")
    return said(text("Reconnection test completed"))


async def missing_capability(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
    needed = types.ClientCapabilities(sampling=types.SamplingCapability())
    if not context.session.check_client_capability(needed):
        data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool needs sampling",
            data.model_dump(by_alias=True, exclude_none=True),
        )
    return said(text("The client can sample"))


async def quiet_logging(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
    await log(context, "Only for those who asked")
    return said(text("Logged"))


def announcing(bus: InMemorySubscriptionBus, event: ToolsListChanged | PromptsListChanged) -> Run:
    async def run(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
        await bus.publish(event)
        return said(text("Announced"))

    return run


SCHEMA_2020_12: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def all_tools(bus: InMemorySubscriptionBus) -> dict[str, tuple[Mapping[str, Any], Run]]:
    """name → (input schema, what it does)"""
    prompt = {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}
    message = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
    region = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    sound = types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav")
    mixed = said(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    )
    resource = embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    answer = {"response": {"type": "string", "description": "User's response"}}
    return {
        "test_simple_text": (NO_ARGUMENTS, fixed(said(text("This is a simple text response for testing.")))),
        "test_image_content": (NO_ARGUMENTS, fixed(said(image()))),
        "test_audio_content": (NO_ARGUMENTS, fixed(said(sound))),
        "test_embedded_resource": (NO_ARGUMENTS, fixed(said(resource))),
        "test_multiple_content_types": (NO_ARGUMENTS, fixed(mixed)),
        "test_tool_with_logging": (NO_ARGUMENTS, with_logging),
        "test_tool_with_progress": (NO_ARGUMENTS, with_progress),
        "test_error_handling": (NO_ARGUMENTS, failing),
        "test_sampling": (prompt, sampling),
        "test_elicitation": (message, eliciting(answer, ["response"])),
        "test_elicitation_sep1034_defaults": (NO_ARGUMENTS, eliciting(DEFAULTS, [])),
        "test_elicitation_sep1330_enums": (NO_ARGUMENTS, eliciting(ENUMS, [])),
        "test_reconnection": (NO_ARGUMENTS, reconnection),
        "test_missing_capability": (NO_ARGUMENTS, missing_capability),
        "test_logging_tool": (NO_ARGUMENTS, quiet_logging),
        "test_trigger_tool_change": (NO_ARGUMENTS, announcing(bus, ToolsListChanged())),
        "test_trigger_prompt_change": (NO_ARGUMENTS, announcing(bus, PromptsListChanged())),
        "test_custom_header": (region, fixed(said(text("The headers fit")))),
        "json_schema_2020_12_tool": (SCHEMA_2020_12, fixed(said(text("ok")))),
    }
