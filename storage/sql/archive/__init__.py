"""The archive: memories with all their parts, out of the tables that recall reads (spec O8)."""
