"""Content over HTTP, for mirrors without a web server or an rsync daemon; off by default."""
