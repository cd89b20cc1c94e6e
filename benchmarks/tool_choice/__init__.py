"""Whether an agent that has nothing but `tools/list` chooses the right tool and arguments."""
