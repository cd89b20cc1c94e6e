"""How scenes become memories."""
