"""The ways to the upstreams of a module: asking for metadata, again and elsewhere if need be."""
