"""What both programs share besides the format: configuration files, locks, output, exit."""
