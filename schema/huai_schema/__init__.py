"""The metadata format of huai: values, codec, git layout and comparison.

All but `program` is pure: it reads no disk, no clock and no network.  Nothing here
imports anything beyond the standard library.  `docs/FORMAT.md` is the
normative description; where the two differ, one of them has a bug.
"""

__version__ = "0.1.0"
"""As pyproject.toml says; looking it up among what is installed takes longer than a poll."""
