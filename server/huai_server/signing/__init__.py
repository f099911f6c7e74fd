"""The signing of commits, and the keys whose signatures downstreams trust."""
