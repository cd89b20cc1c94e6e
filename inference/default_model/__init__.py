"""The default embedding model: two encoders whose vectors stand side by side (ADR 106). Its files come with this
package; the build makes them (`hatch_build.py`), with numpy alone."""
