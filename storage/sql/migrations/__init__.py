"""Alembic migrations. The newest revision is `storage.sql.schema.HEAD`."""
