"""Several modules at once, each in a process of its own.

If one crashes or is killed, the others go on.
"""

from huai_client.cli.parallel.run_all import run_all

__all__ = ["run_all"]
