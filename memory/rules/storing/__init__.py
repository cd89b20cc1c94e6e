"""What is worth storing, as which kind, cut how, and what says the same."""
