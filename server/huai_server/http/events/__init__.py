"""`/api/v1/events`: who stays connected is told of each new commit."""
