"""The command `madeleine`, a module for each subcommand."""
