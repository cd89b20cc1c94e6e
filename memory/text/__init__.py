"""One reading of a text: sentences, words, numbers, names, negation, preference."""
