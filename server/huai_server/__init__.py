"""The upstream side of huai: scan, commit and serve the metadata of modules."""
