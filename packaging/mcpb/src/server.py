"""What a client starts from the bundle: the command of the published package."""

import sys

from madeleine.server.cli.main import main

if __name__ == "__main__":
    sys.exit(main([]))
