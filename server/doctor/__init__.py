"""What `madeleine doctor` looks at. Nothing here changes anything, starts a host, or needs one to be ended."""
