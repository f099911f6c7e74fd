"""The use cases that change a tree: sync to the newest commit, repair and undo."""
