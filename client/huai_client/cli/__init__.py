"""The command lines: arguments in; text, JSON and exit codes out."""
