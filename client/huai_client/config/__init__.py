"""The administrator's settings: client.toml, its tables, and what follows from them."""
