"""A year of real conversations, with and without a patrol; see `__main__`."""
