"""The suites of a ledger: storing, searching, conversations, patrols, forgetting."""
