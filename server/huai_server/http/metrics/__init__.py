"""Metrics of a running server, as Prometheus asks for them.

What is counted for each request is plain numbers in `traffic`; the library makes text of them when
somebody asks.
"""
