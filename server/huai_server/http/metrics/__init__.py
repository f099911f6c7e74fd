"""Metrics of a running server for Prometheus.

`traffic` counts requests in plain numbers; the library formats them when metrics are fetched.
"""
