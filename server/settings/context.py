"""Settings of a context: what goes into a prompt unless a caller says otherwise (spec H5)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from madeleine.memory.context.values import ContextFlags

_DEFAULT = ContextFlags()


class ContextSettings(BaseModel):
    enable_memories: bool = _DEFAULT.enable_memories
    """Memories and search results that the message brings to mind."""
    context_verbosity: Annotated[int, Field(ge=0, le=50)] = _DEFAULT.context_verbosity
    """How many of each kind of history-like items, memories included."""
    unified_history: bool = _DEFAULT.unified_history
    """Other conversations of all interfaces; off: only those of the interface of this one."""
    prompt_lite_mode: bool = _DEFAULT.prompt_lite_mode
    """At most two of each, and the diary in short."""
    enable_history_current_chat: bool = _DEFAULT.enable_history_current_chat
    enable_history_recent: bool = _DEFAULT.enable_history_recent
    """Messages of other conversations."""
    enable_ai_diary: bool = _DEFAULT.enable_ai_diary
    ai_diary_full: bool = _DEFAULT.ai_diary_full
    """Whole entries; off: the first sentence of each."""
    enable_thoughts: bool = _DEFAULT.enable_thoughts
    """What the last patrol noticed (think_md)."""
    enable_tags_placeholder: bool = _DEFAULT.enable_tags_placeholder
    """An empty list, for programs that want to find one."""
    context_token_limit: Annotated[int, Field(ge=1, le=1_000_000)] = 8_000
