"""The help of the command line: texts, examples, pages, completion."""
