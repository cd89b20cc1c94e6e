"""The database file: connections, tables, schema, and how values become columns."""
