"""Who holds what: the attestations of downstreams, what they say of lag, what probes found."""
