"""Objects and packs of git, as bytes."""
