"""What the beings of a store share: the memory of their organisation (spec O4, O5)."""
