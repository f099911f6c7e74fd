"""A command for several modules at once, each in its own process."""
