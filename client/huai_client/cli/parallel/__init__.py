"""Runs a command for several modules at once, each in its own process.

If one crashes or is killed, the others continue.
"""

from huai_client.cli.parallel.run_all import run_all

__all__ = ["run_all"]
