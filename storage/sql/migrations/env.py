"""Run by Alembic, on the connection that `storage.sql.database.schema` hands over, inside its transaction."""

from __future__ import annotations

from alembic import context

from madeleine.storage.sql.database.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
