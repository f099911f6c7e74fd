"""Web hooks: other programs are notified of each new commit by a request."""
