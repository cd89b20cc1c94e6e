"""Clients of the host: the forwarder that an MCP client starts, and the clients of programs and commands.

The forwarder imports the standard library only, so that it starts in tens of milliseconds."""
