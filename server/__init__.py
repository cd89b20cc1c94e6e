"""The program: settings, wiring, transports, command line."""

__version__ = "0.1.0"
