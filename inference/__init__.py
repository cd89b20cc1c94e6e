"""Models: embedding and token counts. Everything here may be slow to load and is loaded when first needed."""

PACKAGED_MODEL_NAME = "madeleine/two-encoders-1"
"""The default embedding model, which comes with this package (ADR 106)."""
FP32_MODEL_NAME = "sentence-transformers/all-MiniLM-L6-v2"
ENGLISH_MODEL_NAME = f"{FP32_MODEL_NAME}@int8"
"""The default model's encoder of English by itself: the default of earlier versions."""
