"""Web hooks: other programs are told of each new commit by a request of their own."""
