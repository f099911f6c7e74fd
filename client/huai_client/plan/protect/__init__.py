"""What a sync must not touch: the administrator's own paths, and what rsync's rules keep."""
