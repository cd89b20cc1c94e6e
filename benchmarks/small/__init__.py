"""Small stores of one agent's own memories, with questions, and the program that asks them."""
