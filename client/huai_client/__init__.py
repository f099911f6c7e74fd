"""The downstream side of huai: fetch the metadata, plan, transfer and publish."""
