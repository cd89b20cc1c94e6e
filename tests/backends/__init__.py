"""The protocols of a company's memory: one suite each, run by every backend."""
