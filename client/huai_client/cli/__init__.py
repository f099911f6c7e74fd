"""The programs: arguments in; text, JSON and exit codes out."""
