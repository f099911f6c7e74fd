"""The text of the format: entries as lines, the descriptor, the commit."""
