"""Which candidates match, and in which order they come."""
