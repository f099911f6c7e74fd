"""The metadata format of huai: values, codec, git layout and comparison.

Pure: reads no disk, no clock and no network.  Nothing here
imports anything beyond the standard library.  `docs/FORMAT.md` is the
normative description; where the two differ, one of them has a bug.
"""

__version__ = "0.1.0"
"""The version in pyproject.toml; importlib.metadata would take longer than a whole poll."""
