"""How well preferences are told from other sentences (ruling 15)."""
