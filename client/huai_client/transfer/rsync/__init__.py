"""rsync runs: arguments, output, exit status, and confinement."""
