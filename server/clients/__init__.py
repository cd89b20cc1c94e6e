"""The configuration of MCP clients: where it lies, and how an entry is put into it and taken out again."""
