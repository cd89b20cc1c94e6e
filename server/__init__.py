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


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """While large modules are imported, of which nothing is garbage: looking for it is a seventh of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
