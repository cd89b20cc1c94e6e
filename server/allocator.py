"""The C library's share of a server's memory.

glibc gives each thread that asks for memory at the same time as another a heap of its own ("arena"), up to eight a
processor, and what is free in one is of no use to the others. A server has a dozen threads (one for each connection to
SQLite alone), of which the GIL lets few ask at once. Pouring in 10 MB (17,000 memories), without the model: 45 MB were
free and scattered over 16 heaps at the end; with two heaps 20.
"""

from __future__ import annotations

import ctypes
import sys

ARENAS = 2
_M_ARENA_MAX = -8
"""As glibc's malloc.h has it."""


def use_few_arenas() -> None:
    """For the rest of the process; those that it has already stay. Nothing where the C library is another."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, ARENAS)
