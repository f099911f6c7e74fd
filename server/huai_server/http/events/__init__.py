"""`/api/v1/events`: connected clients are notified of each new commit."""
