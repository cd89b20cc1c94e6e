"""Tags, hits and excerpts of keyword search."""
