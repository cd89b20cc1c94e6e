"""Who is on a connection, and what it may use: shared by all that serves MCP."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from mcp.server.context import ServerRequestContext

from madeleine.memory.language_model import LanguageModel
from madeleine.memory.model import BeingId, Role

Context = ServerRequestContext[None, object]


@dataclass(frozen=True, slots=True)
class Caller:
    """From stdio's configuration, or the token of an HTTP request (ruling 12)."""

    being_id: BeingId
    role: Role = "agent"
    read_only: bool = False


CallerOf = Callable[[Context], Caller]
LanguageModelOf = Callable[[Context], AbstractAsyncContextManager[LanguageModel | None]]
"""Opens the language model for a call, with the key that is to be used for it; None where there is none."""


def fixed_caller(caller: Caller) -> CallerOf:
    """For a connection that belongs to one caller."""
    return lambda _: caller
