"""Archive and retention: what has had its time leaves the memory and can come back (spec O8, O9)."""
