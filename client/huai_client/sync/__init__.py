"""One sync, from the newest commit to a tree that equals it, and the way back."""
