"""A demonstration: not part of the product."""
