"""The administrator's settings: server.toml and its tables."""
