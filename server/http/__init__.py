"""MCP over HTTP: who is let in, how much they may have, and the two transports."""
