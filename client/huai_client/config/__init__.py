"""What the administrator wrote down: client.toml, its tables, and what follows from them."""
