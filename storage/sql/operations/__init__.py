"""Operational records: audit, settings, tokens, profile."""
