"""How memories are written into prompts and answers."""
