"""Memories, their vectors, clusters and activations."""
