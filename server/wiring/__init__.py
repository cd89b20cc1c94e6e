"""Joins adapters to ports: opens a data directory and hands out the use cases."""
