"""What this client keeps between two runs: every file below its state root."""
