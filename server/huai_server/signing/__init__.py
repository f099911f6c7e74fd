"""Who signs the commits of this server, and whose signatures downstreams are to believe."""
