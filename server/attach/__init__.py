"""What an MCP client starts: a forwarder to the host of the data directory. Standard library only, so that it starts in
tens of milliseconds."""
