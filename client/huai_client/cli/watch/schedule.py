"""When which module is synced.

Pure: reads no clock, and the chance is handed in.  Times are seconds of a monotonic clock.

Rules:

- What an upstream told of is due within the spread, and never while the module is in work.
- After a failure comes a pause that doubles, with jitter; a newer commit ends it, within the
  spread.  A commit that was told of before shortens it to the first pause.
- A module that nobody tells of is polled.  So is, far less often, one that somebody does: a sync
  also finds what no event tells of, such as a tree that is gone or an upstream that is stale.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

FIRST_PAUSE = 15.0
"""Seconds after the first failure."""
_LONGEST_PAUSE = 1800.0
_LOCKED_PAUSE = 60.0
_DOUBLINGS = 10


class Rhythm(NamedTuple):
    """Seconds."""

    spread: float
    """Within which what was told of is begun."""
    poll: float
    """Between two syncs of a module that nobody tells of."""
    look: float
    """The same if somebody does."""


@dataclass(slots=True)
class _Module:
    rhythm: Rhythm
    due: float
    heard: bool = False
    failures: int = 0


class Schedule:
    """The modules, and when each is due."""

    def __init__(self, uniform: Callable[[float, float], float]) -> None:
        """`uniform` draws a number between two others."""
        self._uniform = uniform
        self._modules: dict[str, _Module] = {}
        self._working: set[str] = set()

    def take(self, rhythms: Mapping[str, Rhythm], now: float) -> None:
        """From now on there are these modules; new ones are due at once."""
        for name in self._modules.keys() - rhythms.keys():
            del self._modules[name]
        for name, rhythm in rhythms.items():
            known = self._modules.get(name)
            if known is None:
                due = now + self._uniform(0, rhythm.spread)
                self._modules[name] = _Module(rhythm, due)
            elif known.rhythm != rhythm:
                known.rhythm = rhythm
                known.due = min(known.due, now + self._interval(known))

    def hear(self, names: Iterable[str], now: float, *, heard: bool) -> None:
        """Somebody tells of these modules from now on, or does no more."""
        for name in names:
            module = self._modules.get(name)
            if module is not None and module.heard != heard:
                module.heard = heard
                if not heard:
                    module.due = min(module.due, now + self._uniform(0, module.rhythm.poll))

    def told(self, name: str, now: float, *, newer: bool = True) -> None:
        """There is a commit that is not here yet; `newer`: it was not told of before."""
        module = self._modules.get(name)
        if module is not None:
            spread = module.rhythm.spread
            longest = max(spread, FIRST_PAUSE) if module.failures and not newer else spread
            module.due = min(module.due, now + self._uniform(0, longest))

    def began(self, name: str) -> None:
        """It is in work."""
        self._working.add(name)

    def ended(self, name: str, now: float, *, failed: bool, locked: bool = False) -> float:
        """It is not any more; how many seconds it rests.  `locked`: somebody else has it."""
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
        """Those that are to be begun now, the one that waited longest first."""
        waiting = [(module.due, name) for name, module in self._idle()]
        return [name for due, name in sorted(waiting) if due <= now]

    def next_due(self) -> float:
        """When the next one is; infinite: never."""
        return min((module.due for _, module in self._idle()), default=float("inf"))

    @property
    def size(self) -> int:
        """How many modules there are."""
        return len(self._modules)

    @property
    def unheard(self) -> int:
        """How many modules nobody tells of."""
        return sum(not module.heard for module in self._modules.values())

    def _idle(self) -> list[tuple[str, _Module]]:
        return [each for each in self._modules.items() if each[0] not in self._working]

    def _interval(self, module: _Module) -> float:
        usual = module.rhythm.look if module.heard else module.rhythm.poll
        return self._uniform(usual * 3 / 4, usual * 5 / 4)
