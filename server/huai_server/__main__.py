"""The program `huai-server`, which a Ctrl-C ends quietly while it is still being loaded.

Rule to keep: it imports nothing before `leave_quietly`.
"""

from huai_program.signals import leave_quietly


def main() -> None:
    """Run `huai-server` with the arguments of this process, and exit with its code."""
    leave_quietly()
    from huai_program.garbage import collect_rarely

    collect_rarely()
    from huai_server.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
