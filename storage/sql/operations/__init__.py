"""Operational data (spec O10)."""
