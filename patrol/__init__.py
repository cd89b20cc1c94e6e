"""What happens at night: memories are sorted, fade, come back (spec P6)."""
