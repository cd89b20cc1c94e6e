"""Memory for agents of the Microsoft Agent Framework. Needs the extra `agent-framework`.

    async with madeleine.connect(being="ada") as memory:
        agent = Agent(client=chat_client, context_providers=[MadeleineContextProvider(memory)])

Before each run the agent is given what the message brings to mind, and at the beginning of a session what is good to
know; after it the messages are kept, word for word. The framework's own history stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agent_framework import ContextProvider, Message

from madeleine.memory.chat import MAX_OBSERVED_MESSAGES_PER_CALL

if TYPE_CHECKING:
    from agent_framework import AgentSession, SessionContext, SupportsAgentRun

    from madeleine.client import Memory

CONTEXT_PROVIDER_SOURCE_ID = "madeleine"
DEFAULT_CONTEXT_TOKEN_BUDGET = 2000
_STARTED = "started"


class MadeleineContextProvider(ContextProvider):
    """`memory`: an open connection. `token_budget`: of what is added to a run. `start`: begin a session with what is
    good to know. Every method raises `MadeleineError`."""

    def __init__(
        self,
        memory: Memory,
        *,
        source_id: str = CONTEXT_PROVIDER_SOURCE_ID,
        token_budget: int = DEFAULT_CONTEXT_TOKEN_BUDGET,
        start: bool = True,
    ) -> None:
        super().__init__(source_id)
        self._memory = memory
        self._token_budget = token_budget
        self._start = start

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Adds at most two messages of the user's role: memories are data, not instructions."""
        texts = []
        if self._start and not state.get(_STARTED):
            state[_STARTED] = True
            texts.append((await self._memory.recall(token_budget=self._token_budget)).start)
        if asked := "\n".join(text for role, text in _told(context.input_messages) if role == "user"):
            recalled = await self._memory.recall(asked, format="prompt", token_budget=self._token_budget)
            texts.append(recalled.prompt)
        context.extend_messages(self, [Message("user", [text]) for text in texts if text])

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        answers = context.response.messages if context.response else []
        told = [{"role": role, "text": text} for role, text in _told([*context.input_messages, *answers])]
        most = MAX_OBSERVED_MESSAGES_PER_CALL
        for first in range(0, len(told), most):
            await self._memory.observe(session.session_id, told[first : first + most])


def _told(messages: Iterable[Message]) -> Iterable[tuple[str, str]]:
    """(role, text) of what was said; calls of tools and their answers are left out."""
    for message in messages:
        if message.role in ("user", "assistant") and message.text.strip():
            yield message.role, message.text
