"""The tables of the ledger by subject, and what each says of erasing, restoring and archiving its rows."""
