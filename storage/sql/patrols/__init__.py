"""Reads, changes, records and undo of patrols."""
