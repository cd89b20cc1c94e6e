"""A text as it is before it is cut (spec L1, step 1)."""

from __future__ import annotations

import re
import unicodedata

_ENDS_OF_LINES = re.compile(r"\r\n?")
_THREE_OR_MORE = re.compile(r"\n{3,}")


def cleaned(text: str) -> str:
    """NFC, three and more ends of lines made two, nothing blank at either end. Formatting and code stay as they are;
    only ends of lines are written one way. Cleaning twice is cleaning once."""
    text = _ENDS_OF_LINES.sub("\n", unicodedata.normalize("NFC", text))
    return _THREE_OR_MORE.sub("\n\n", text).strip()
