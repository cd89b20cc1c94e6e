"""The entity graph: who and what memories name, how they are related, and since when (spec O14)."""
