"""Models: embedding and token counts. Everything here may be slow to load and is loaded when first needed."""
