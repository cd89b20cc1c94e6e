"""The memory thread: conversations become memories by themselves (spec T1 to T8, H6)."""
