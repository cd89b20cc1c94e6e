"""Keyword and tag search over memories, diary, conversations and notes."""
