"""Which modules a program of ours has loaded when it ends."""

from collections.abc import Sequence


def telling(modules: Sequence[str]) -> str:
    """Lines of Python: what runs after them tells on standard error which of `modules` it loaded.

    It has to end well: then it leaves by `os._exit`.
    """
    return f"""
import os, sys
leave = os._exit
def tell(code):
    sys.stderr.write(f"{{[each for each in {tuple(modules)!r} if each in sys.modules]}}\\n")
    sys.stderr.flush()
    leave(code)
os._exit = tell
"""
