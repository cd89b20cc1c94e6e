"""`python -m madeleine.server.host DIRECTORY`: become its host, or end with 0 if another is.

It listens before it imports what is large, so that a client's connection waits no longer than it must. What it prints
until it serves is for whoever started it.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from madeleine.operating_system import try_to_hold_file_lock
from madeleine.server import EXIT_USAGE, pause_garbage_collection
from madeleine.server.attach.endpoint import (
    HOST_LOCK_FILE,
    UntrustedDirectory,
    open_host_listener,
)
from madeleine.server.settings.environment import read_environment_variables, setting_values_from_variables


def main() -> int:
    os.umask(0o077)
    data_dir = Path(sys.argv[1])
    try:
        with try_to_hold_file_lock(data_dir / HOST_LOCK_FILE) as acquired:
            if not acquired:
                return 0
            transport = setting_values_from_variables(read_environment_variables()).get("attach", "")
            with open_host_listener(data_dir, transport) as (listener, address):
                with pause_garbage_collection():
                    from madeleine.server.host.host import run_host

                return run_host(data_dir, listener, address)
    except (OSError, UntrustedDirectory) as error:
        print(f"madeleine: {data_dir} cannot be used: {error}", file=sys.stderr)
        return EXIT_USAGE


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    sys.stderr.flush()
    # All is closed. A thread that still waits for a network must not keep the process alive.
    os._exit(code)
