"""Alembic migrations. The newest revision is `storage.sql.database.schema.SCHEMA_REVISION`."""
