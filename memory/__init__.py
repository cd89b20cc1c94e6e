"""What a memory is, and what can be done with one. Pure; the world is reached through ports."""
