"""Settings of a context: what goes into a prompt unless a caller says otherwise (spec H5)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class ContextSettings(BaseModel):
    enable_memories: bool = True
    """Memories and search results that the message brings to mind."""
    context_verbosity: Annotated[int, Field(ge=0, le=50)] = 5
    """How many of each kind of history-like items, memories included."""
    unified_history: bool = True
    """Other conversations of all interfaces; off: only those of the interface of this one."""
    prompt_lite_mode: bool = False
    """At most two of each, and the diary in short."""
    enable_history_current_chat: bool = True
    enable_history_recent: bool = True
    """Messages of other conversations."""
    enable_ai_diary: bool = True
    ai_diary_full: bool = False
    """Whole entries; off: the first sentence of each."""
    enable_thoughts: bool = True
    """What the last patrol noticed (think_md)."""
    enable_tags_placeholder: bool = False
    """An empty list, for programs that want to find one."""
    context_token_limit: Annotated[int, Field(ge=1, le=1_000_000)] = 8_000
