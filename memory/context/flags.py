"""What goes into a context unless a caller says otherwise (spec H5)."""

from __future__ import annotations

from dataclasses import dataclass

LITE = 2
"""Of history-like items, in lite mode (spec H5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFlags:
    """spec H5. `context_verbosity`: how many of each of memories, messages of this chat and of others are shown."""

    enable_memories: bool = True
    context_verbosity: int = 5
    unified_history: bool = True
    prompt_lite_mode: bool = False
    enable_history_current_chat: bool = True
    enable_history_recent: bool = True
    enable_ai_diary: bool = True
    ai_diary_full: bool = False
    enable_thoughts: bool = True
    enable_tags_placeholder: bool = False

    @property
    def items(self) -> int:
        return min(self.context_verbosity, LITE) if self.prompt_lite_mode else self.context_verbosity
