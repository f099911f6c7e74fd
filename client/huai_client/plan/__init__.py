"""What a sync is going to do, as a list, and what may be said of it.  Pure."""
