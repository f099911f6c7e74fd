"""Several modules at once, each in a process of its own.

What befalls one, a crash or an end by the kernel, is nothing to the others.
"""

from huai_client.cli.parallel.run_all import run_all

__all__ = ["run_all"]
