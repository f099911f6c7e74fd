"""The HTTP side of the upstream: the git smart protocol, read-only, and the JSON API.

Reads metadata repositories and never writes one.  `app.create_app` builds the ASGI
application, `server.serve_http` runs it until a signal.
"""
