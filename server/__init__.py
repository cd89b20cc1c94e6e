"""The program: settings, wiring, transports, command line."""

__version__ = "0.1.0"

EXIT_USAGE = 2
"""The exit code for what the caller has to change."""
