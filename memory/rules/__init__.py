"""One rule a file: pure, `now` and chance passed in."""
