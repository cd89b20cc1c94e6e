"""The patrol maintains a being's memory: it prepares, runs the steps, gets decisions, and reports (spec P6)."""
