"""The administrator's settings: client.toml, its tables, and values derived from them."""
