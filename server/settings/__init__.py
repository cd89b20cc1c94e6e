"""Every setting, its bounds and its default, by subject."""
