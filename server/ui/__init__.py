"""The page: a being's memory for a person to look over and correct, in a browser."""
