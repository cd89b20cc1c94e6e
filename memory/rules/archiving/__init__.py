"""What goes into the archive, and how it is told there (spec O8, O9)."""
