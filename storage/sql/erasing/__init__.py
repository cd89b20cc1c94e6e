"""Erasing on request, from every table (ruling 11)."""
