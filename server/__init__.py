"""The program: settings, wiring, transports, command line."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__version__ = "0.1.0"

EXIT_FAILURE = 1
"""Exit code of a command that failed, though it was right."""
EXIT_USAGE = 2
"""Exit code of a command that the caller has to change."""
EXIT_NOTHING_TO_DO = 3
"""Exit code of an export or an import that found nothing to do."""
EXIT_INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has ended."""


NEW_OBJECTS_BEFORE_GARBAGE_COLLECTION = 10_000
"""A call makes some thousands that are gone at its end. With Python's 700 looking for garbage took 0.2 ms of a recall
and 0.35 of a store; now a third of that."""


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """While large modules are imported, of which nothing is garbage: looking for it is a seventh of a start. Afterwards
    it is looked for less often."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS_BEFORE_GARBAGE_COLLECTION)
        gc.enable()
