"""Operational data beside the memory (spec O10): tasks, costs, messages, audit, states, settings, projects."""
