"""Matching and ranking of candidates."""
