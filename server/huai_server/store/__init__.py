"""The metadata repositories of this server and all that is kept beside them."""
