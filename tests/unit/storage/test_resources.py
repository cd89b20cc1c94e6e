"""How many heaps the C library makes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from madeleine.storage.resources import MAX_MALLOC_ARENAS

THREADS = 12
BOUNDS = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")
# In a process of its own, as it counts for all of it. Each thread lives until all have asked for memory.
HEAPS = f"""
import ctypes, sys, threading
from madeleine.storage.resources import limit_malloc_arenas
if sys.argv[1] == "few":
    limit_malloc_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
all_have = threading.Barrier({THREADS})
def ask():
    libc.malloc(ctypes.c_size_t(1000))
    all_have.wait()
threads = [threading.Thread(target=ask) for _ in range({THREADS})]
for one in threads: one.start()
for one in threads: one.join()
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
print(open(sys.argv[2]).read().count("<heap nr="))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has a heap for each thread")
def test_a_dozen_threads_share_a_few_heaps(tmp_path_factory: pytest.TempPathFactory) -> None:
    """spec L1: pouring in keeps memory flat; what is free in one heap is of no use to a thread with another."""

    def heaps(how: str) -> int:
        file = tmp_path_factory.mktemp("heaps") / "heaps.xml"
        # Containers often say themselves how many there may be.
        unbounded = {name: value for name, value in os.environ.items() if name not in BOUNDS}
        words = [sys.executable, "-c", HEAPS, how, str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=unbounded)
        return int(done.stdout)

    assert heaps("few") <= MAX_MALLOC_ARENAS < heaps("as it is")
