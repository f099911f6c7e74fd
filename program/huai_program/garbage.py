"""How often a program looks for garbage: hardly ever, if it ends soon.

What a run makes are values, of which none leads back to itself: they go when the last name for them
does.  Looking through them again and again for cycles took a third of the time that planning a
large change takes.
"""

import gc

_USUAL = gc.get_threshold()
_NEW = 50_000
"""Values made since, and not gone: a look at these."""
_ROUNDS = 50
"""After so many of these looks, one at all that they left."""
_NEVER = 1_000_000


def collect_rarely() -> None:
    """Look for cycles among what was made last, and not among what has stayed for long."""
    gc.set_threshold(_NEW, _ROUNDS, _NEVER)


def collect_usually() -> None:
    """Look among all that there is from time to time: for a program that stays for months."""
    gc.set_threshold(*_USUAL)
