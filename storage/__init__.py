"""Where memories live: `sql` holds the truth, `qdrant` the index derived from it."""
