"""What other programs keep, read by its shape: one module a family of formats, listed in `registry`."""
