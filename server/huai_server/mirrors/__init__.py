"""The mirrors of a module: their attestations, their lag, and the results of probes."""
