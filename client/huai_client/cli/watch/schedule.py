"""The schedule of the syncs of modules.

Pure: clock and random numbers are arguments.  Times are seconds of a monotonic clock.

Rules:

- An announced commit is due within the spread, and never while the module is syncing.
- After a failure comes a pause that doubles, with jitter; a newer commit ends it, within the
  spread.  A commit that was announced before shortens it to the first pause.
- A module without events is polled.  So is, far less often, one with events: a sync also detects
  what no event reports, such as a missing tree or a stale upstream.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

FIRST_PAUSE = 15.0
"""The pause in seconds after the first failure."""
_LONGEST_PAUSE = 1800.0
_LOCKED_PAUSE = 60.0
_DOUBLINGS = 10


class Rhythm(NamedTuple):
    """The intervals of a module, in seconds."""

    spread: float
    """Seconds within which a sync starts after its event."""
    poll: float
    """Seconds between two syncs of a module without events."""
    poll_with_events: float
    """Seconds between two syncs of a module with events."""


@dataclass(slots=True)
class _Module:
    rhythm: Rhythm
    due: float
    has_events: bool = False
    failures: int = 0


class SyncSchedule:
    """The modules, with the time when each is due; a module that is not known is ignored."""

    def __init__(self, uniform: Callable[[float, float], float]) -> None:
        """Use `uniform` to draw a number between two others."""
        self._uniform = uniform
        self._modules: dict[str, _Module] = {}
        self._working: set[str] = set()

    def set_modules(self, rhythms: Mapping[str, Rhythm], now: float) -> None:
        """Replace the modules; new ones are due within their spread.

        Those with another rhythm are due after their new interval at the latest.
        """
        for name in self._modules.keys() - rhythms.keys():
            del self._modules[name]
        for name, rhythm in rhythms.items():
            module = self._modules.get(name)
            if module is None:
                due = now + self._uniform(0, rhythm.spread)
                self._modules[name] = _Module(rhythm, due)
            elif module.rhythm != rhythm:
                module.rhythm = rhythm
                module.due = min(module.due, now + self._interval(module))

    def set_events(self, names: Iterable[str], now: float, *, has_events: bool) -> None:
        """Mark modules as covered by events, or not; those not covered are due within `poll`."""
        for name in names:
            module = self._modules.get(name)
            if module is not None and module.has_events != has_events:
                module.has_events = has_events
                if not has_events:
                    module.due = min(module.due, now + self._uniform(0, module.rhythm.poll))

    def announce(self, name: str, now: float, *, newer: bool = True) -> None:
        """Schedule a sync within the spread, for a commit that is not here yet.

        Without `newer` it was announced before: after failures the sync may come 15 seconds later.
        """
        module = self._modules.get(name)
        if module is not None:
            spread = module.rhythm.spread
            longest = max(spread, FIRST_PAUSE) if module.failures and not newer else spread
            module.due = min(module.due, now + self._uniform(0, longest))

    def began(self, name: str) -> None:
        """Mark a module as syncing: it is not due until `ended`."""
        self._working.add(name)

    def ended(self, name: str, now: float, *, failed: bool, locked: bool = False) -> float:
        """Schedule the sync after one that ended; return the seconds until then.

        Returns 0 for a module that is not known.  `failed`: or it did not find what was announced;
        `locked`: another run held the lock.
        """
        self._working.discard(name)
        module = self._modules.get(name)
        if module is None:
            return 0
        if locked:
            rest = self._uniform(_LOCKED_PAUSE / 2, _LOCKED_PAUSE)
        elif failed:
            pause = min(_LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(module.failures, _DOUBLINGS))
            module.failures += 1
            rest = self._uniform(pause / 2, pause)
        else:
            module.failures = 0
            rest = self._interval(module)
        module.due = now + rest
        return rest

    def due(self, now: float) -> list[str]:
        """Return the modules that are due and not syncing, the longest waiting first."""
        waiting = [(module.due, name) for name, module in self._idle()]
        return [name for due, name in sorted(waiting) if due <= now]

    def next_due(self) -> float:
        """Return the time when the next module is due, or infinity."""
        return min((module.due for _, module in self._idle()), default=float("inf"))

    @property
    def size(self) -> int:
        """The number of modules."""
        return len(self._modules)

    @property
    def polled(self) -> int:
        """The number of modules without events."""
        return sum(not module.has_events for module in self._modules.values())

    def _idle(self) -> list[tuple[str, _Module]]:
        return [each for each in self._modules.items() if each[0] not in self._working]

    def _interval(self, module: _Module) -> float:
        """Return the seconds until the next poll, up to a quarter more or less than configured."""
        usual = module.rhythm.poll_with_events if module.has_events else module.rhythm.poll
        return self._uniform(usual * 3 / 4, usual * 5 / 4)
