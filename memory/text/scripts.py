"""Scripts that put no spaces between words, or join them to particles: parts of a regular expression's character class,
each to stand inside of brackets."""

from __future__ import annotations

import re

HAN_CHAR_CLASS = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HIRAGANA_CHAR_CLASS = "\u3040-\u309f"
KATAKANA_CHAR_CLASS = "\u30a0-\u30fa\u30fc-\u30ff"
HANGUL_CHAR_CLASS = "\uac00-\ud7a3"
SOUTHEAST_ASIAN_CHAR_CLASS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese and Khmer."""
HAN_AND_KANA_CHAR_CLASS = HAN_CHAR_CLASS + HIRAGANA_CHAR_CLASS + KATAKANA_CHAR_CLASS

HAN_CHAR_PATTERN = re.compile(f"[{HAN_CHAR_CLASS}]")
HAN_RUN_PATTERN = re.compile(f"[{HAN_CHAR_CLASS}]+")
HAN_OR_KANA_CHAR_PATTERN = re.compile(f"[{HAN_AND_KANA_CHAR_CLASS}]")
HIRAGANA_RUN_PATTERN = re.compile(f"[{HIRAGANA_CHAR_CLASS}]+")
UNSPACED_SCRIPT_CHAR_PATTERN = re.compile(f"[{HAN_AND_KANA_CHAR_CLASS}{SOUTHEAST_ASIAN_CHAR_CLASS}]")
