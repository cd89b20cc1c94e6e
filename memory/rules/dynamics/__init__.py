"""How memories fade, revive, group and change."""
