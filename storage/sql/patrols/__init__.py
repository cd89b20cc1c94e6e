"""What a patrol reads, changes, records and undoes."""
