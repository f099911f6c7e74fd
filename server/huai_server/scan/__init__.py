"""Reading a whole tree: what is there now, directory by directory."""
