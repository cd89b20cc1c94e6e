"""What the C library does with memory that nobody uses any more. Matters to glibc, and nothing is done elsewhere.

glibc gives threads that ask for memory at the same time heaps of their own ("arenas"), up to eight a processor, and
what is free in one is of no use to the others. A server has a dozen threads (each connection to SQLite is one), of
which the GIL lets few ask at once. And what is free in the midst of a heap it keeps, until it is told to look.

Pouring in 10 MB (17,000 memories), the model left out, 45 of 258 MB were such gaps at the end.
"""

from __future__ import annotations

import ctypes
import sys

MAX_ARENAS = 2
_M_ARENA_MAX = -8
"""As glibc's malloc.h has it."""

# A C library of another make has none of the two.
_libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def use_few_arenas() -> None:
    """For the rest of the process. Those that it has already stay."""
    if mallopt := getattr(_libc, "mallopt", None):
        mallopt(_M_ARENA_MAX, MAX_ARENAS)


def return_free_memory() -> None:
    """What is free, to the system: some milliseconds, without the GIL. For when much was let go of at once."""
    if malloc_trim := getattr(_libc, "malloc_trim", None):
        malloc_trim(0)
