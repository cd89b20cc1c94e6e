"""Text as keyword search compares it (spec P11): letter case and compatibility forms make no difference."""

from __future__ import annotations

import unicodedata

SEPARATOR = "\x1f"
"""Between fields that are searched as one, so that no term matches across two of them; kept out of what is folded."""


def fold(text: str) -> str:
    """NFKC of the casefolded text: `Ｓtraße` and `STRASSE` are one."""
    if text.isascii():
        return text.lower().replace(SEPARATOR, " ")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # A lone surrogate, which a client can send as JSON, cannot be written in UTF-8 and so cannot be stored.
    return folded.replace(SEPARATOR, " ").encode(errors="replace").decode()
