"""What the commands that export and import share."""
