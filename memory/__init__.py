"""What a memory is, and what can be done with one. Pure core and use cases; the world is reached through `memory.ports`."""
