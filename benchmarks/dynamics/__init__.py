"""A simulated year of use, which shows what fading and revival do to recall."""
