"""Tools and a prompt that ask back before they answer (SEP-2322): results that require input, over several rounds."""

from __future__ import annotations

from collections.abc import Mapping

import mcp_types as types

from madeleine.server.mcp.server import RequestContext
from tests.conformance.tools import Answer, Run, said, text


def form(message: str, name: str, kind: str = "string") -> types.ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(question: str, most: int) -> types.CreateMessageRequest:
    asked = types.SamplingMessage(role="user", content=text(question))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[asked], max_tokens=most))


def roots() -> types.ListRootsRequest:
    return types.ListRootsRequest()


def missing(asked: Mapping[str, types.InputRequest], given: types.InputResponses | None) -> bool:
    """Whether an answer is not there, or is of another kind than was asked for."""
    kinds = {
        types.ElicitRequest: types.ElicitResult,
        types.CreateMessageRequest: types.CreateMessageResult,
        types.ListRootsRequest: types.ListRootsResult,
    }
    return not all(isinstance((given or {}).get(key), kinds[type(request)]) for key, request in asked.items())


def asking(asked: types.InputRequests, *, state: str | None = None, done: str = "Thank you") -> Run:
    """Asks until every answer is there; with `state`, also until that has come back."""

    async def run(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
        if missing(asked, params.input_responses) or (state is not None and params.request_state != state):
            return types.InputRequiredResult(input_requests=asked, request_state=state)
        return said(text(f"{done}: {summary(params.input_responses or {})}"))

    return run


def summary(given: types.InputResponses) -> str:
    return "; ".join(f"{key} {value.model_dump_json(by_alias=True)}" for key, value in sorted(given.items()))


async def rounds(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
    first = {"step1": form("Step 1: What is your name?", "name")}
    second = {"step2": form("Step 2: What is your favorite color?", "color")}
    if params.request_state == "two" and not missing(second, params.input_responses):
        return said(text("Both rounds are done"))
    if params.request_state == "one" and not missing(first, params.input_responses):
        return types.InputRequiredResult(input_requests=dict(second), request_state="two")
    return types.InputRequiredResult(input_requests=dict(first), request_state="one")


async def by_capability(context: RequestContext, params: types.CallToolRequestParams) -> Answer:
    """Asks only for what the client can do."""
    can = context.session.client_capabilities or types.ClientCapabilities()
    asked: types.InputRequests = {}
    if can.elicitation is not None:
        asked["name"] = form("What is your name?", "name")
    if can.sampling is not None:
        asked["greeting"] = sample("Generate a greeting", 50)
    if not asked or not missing(asked, params.input_responses):
        return said(text("Nothing to ask"))
    return types.InputRequiredResult(input_requests=asked)


ASKING: Mapping[str, Run] = {
    "test_input_required_result_elicitation": asking({"user_name": form("What is your name?", "name")}),
    "test_input_required_result_sampling": asking({"capital_question": sample("What is the capital of France?", 100)}),
    "test_input_required_result_list_roots": asking({"client_roots": roots()}),
    "test_input_required_result_request_state": asking(
        {"confirm": form("Please confirm", "ok", "boolean")}, state="asked", done="state-ok"
    ),
    "test_input_required_result_tampered_state": asking(
        {"confirm": form("Please confirm", "ok", "boolean")}, state="asked"
    ),
    "test_input_required_result_multiple_inputs": asking(
        {
            "user_name": form("What is your name?", "name"),
            "greeting": sample("Generate a greeting", 50),
            "client_roots": roots(),
        },
        state="asked",
    ),
    "test_input_required_result_multi_round": rounds,
    "test_input_required_result_capabilities": by_capability,
    "test_streaming_elicitation": asking({"user_name": form("What is your name?", "name")}),
}

PROMPT = "test_input_required_result_prompt"
PROMPT_ASKS: types.InputRequests = {"user_context": form("What context should the prompt use?", "context")}
