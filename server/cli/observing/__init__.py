"""`madeleine observe`: the hooks of agents, by the standard library alone."""
