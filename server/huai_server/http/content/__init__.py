"""Content over HTTP: large files, or all for mirrors without a web server or a daemon."""
