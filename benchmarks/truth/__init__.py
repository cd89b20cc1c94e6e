"""What is true now: facts that change over half a year, and what must not be taken for a change."""
