"""The program: settings, wiring, transports, command line."""

__version__ = "0.1.0"

EXIT_FAILURE = 1
"""Exit code of a command that failed, though it was right."""
EXIT_USAGE = 2
"""Exit code of a command that the caller has to change."""
