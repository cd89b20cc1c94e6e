"""How memories come back."""
