"""Models: embedding and token counts. Everything here may be slow to load and is loaded when first needed."""

FP32_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGED_MODEL = f"{FP32_MODEL}@int8"
"""The default embedding model, which comes with this package."""
