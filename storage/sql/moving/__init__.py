"""Exports, imports and backups of the ledger."""
