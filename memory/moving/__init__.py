"""A memory out of the store and back: the export file, its Markdown view, import."""
