"""Below every route: bodies, answers, connections and their limits."""
