"""Models: embedding and token counts. Everything here may be slow to load and is loaded when first needed."""

FP32_MODEL_NAME = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGED_MODEL_NAME = f"{FP32_MODEL_NAME}@int8"
"""The default embedding model, which comes with this package."""
