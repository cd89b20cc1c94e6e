"""In-memory adapters that pass the contract suites of their ports (`tests/contracts`)."""
