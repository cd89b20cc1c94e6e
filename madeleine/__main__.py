"""`python -m madeleine`: the command, where no script is at hand."""

from __future__ import annotations

import sys

from madeleine.server.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
