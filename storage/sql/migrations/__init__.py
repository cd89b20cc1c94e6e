"""Alembic migrations. The newest revision is `storage.sql.database.schema.NEWEST_SCHEMA_REVISION`."""
