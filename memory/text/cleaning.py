"""Clean a text before it is split into chunks (spec L1, step 1)."""

from __future__ import annotations

import re
import unicodedata

_ENDS_OF_LINES = re.compile(r"\r\n?")
_THREE_OR_MORE = re.compile(r"\n{3,}")


def clean_text(text: str) -> str:
    """NFC, line ends as \\n, at most one blank line in a row, no white space at either end. Formatting and code stay.
    Idempotent."""
    text = _ENDS_OF_LINES.sub("\n", unicodedata.normalize("NFC", text))
    return _THREE_OR_MORE.sub("\n\n", text).strip()
