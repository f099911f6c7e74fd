"""What the steps between two snapshots add up to.

Pure.
"""

from collections import Counter

from huai_client.humanize import human
from huai_client.inspect.comparison import Sign, Step
from huai_schema.entries import File


class Tally:
    """Counts of steps, and the bytes of files that came, went or have other content."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._counts: Counter[Sign] = Counter()
        self._bytes: Counter[Sign] = Counter()

    def add(self, step: Step) -> None:
        """One more."""
        self._counts[step.sign] += 1
        file = step.old if step.sign is Sign.REMOVED else step.new
        counted = step.sign is not Sign.CHANGED or {"size", "digest", "type"} & {*step.attributes}
        if isinstance(file, File) and counted:
            self._bytes[step.sign] += file.size

    def values(self) -> dict[str, int]:
        """For JSON: each sign, and the bytes of its files."""
        found: dict[str, int] = {}
        for sign in Sign:
            found[str(sign)] = self._counts[sign]
            found[f"{sign}_bytes"] = self._bytes[sign]
        return found

    def __str__(self) -> str:
        parts = (
            f"{self._counts[sign]:,} {sign} ({human(self._bytes[sign])})"
            for sign in Sign
            if self._counts[sign]
        )
        return ", ".join(parts) or "nothing differs"
