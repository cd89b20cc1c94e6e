"""The commands of retention and the archive."""
