"""Running rsync: its arguments, output, exit status, and what it may touch."""
