"""The ledger: every memory, note and cluster, in SQL (SQLite by default). Start at `ledger.open_ledger`."""
