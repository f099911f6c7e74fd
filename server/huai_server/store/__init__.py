"""The metadata repositories of this server and the files next to them."""
