"""Operational data beside the memory (spec O10): what model calls cost."""
