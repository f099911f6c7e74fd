"""Fetching metadata from the upstreams of a module, with retries and fail-over."""
