"""What a mind decides in a patrol (spec P6 ❹ ❻, P8, L3): what it is offered, and which of its answers count.

The mind is a language model or the agent that called the tool (ruling 10); both are held to the same rules. Nothing
here stores anything, and only `decide` and `classify` ask.
"""
