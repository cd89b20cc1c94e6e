"""Decisions in a patrol (spec P6 ❹ ❻, P8, L3): what is offered to be decided, and which answers count.

A language model decides, or the agent that called the tool (ruling 10); both are held to the same rules.
"""
