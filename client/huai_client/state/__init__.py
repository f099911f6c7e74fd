"""The files below the client's state root, which it keeps between runs."""
