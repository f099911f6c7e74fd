"""The layer below every route: bodies, responses, connections and their limits."""
