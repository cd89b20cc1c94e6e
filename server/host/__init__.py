"""The one process that owns a data directory, and serves all its clients."""
