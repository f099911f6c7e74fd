"""What a run says: to people, to programs, to a log file."""
