"""What the administrator wrote down: server.toml and its tables."""
