"""Core blocks: short texts that an agent keeps in every prompt and edits itself (spec O12)."""
