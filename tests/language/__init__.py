"""A language model of the tests' own."""
