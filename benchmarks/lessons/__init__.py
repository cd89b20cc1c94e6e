"""Lessons of 60 failures, and tasks that meet their condition again or do not (spec O11)."""
