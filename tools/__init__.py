"""The MCP tools: one family a file. Arguments in, use case, answer out; product text lives here."""
