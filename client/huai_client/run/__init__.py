"""The circumstances of one run: options of the command line, deadline, retries."""
