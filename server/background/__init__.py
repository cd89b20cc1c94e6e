"""Work off the request path: index upkeep, scheduled patrols, the memory thread."""
