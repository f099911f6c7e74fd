"""What one run brings along: options of the command line, deadline, pauses."""
