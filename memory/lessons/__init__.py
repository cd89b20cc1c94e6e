"""Lessons from failures: proposed apart from who failed, found when the condition comes up again (spec O11)."""
