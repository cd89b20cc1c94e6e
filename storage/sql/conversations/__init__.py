"""Messages, notes and ingested texts."""
