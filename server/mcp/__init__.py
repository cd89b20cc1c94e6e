"""The MCP server and its stdio transport."""
