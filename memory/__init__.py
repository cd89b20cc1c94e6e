"""The core: values, rules and use cases of memories. Pure; adapters implement its ports."""
