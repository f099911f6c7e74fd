"""Relaying of commits that huai-client applied on this machine to further downstreams."""
