"""The program `huai-client`, which a Ctrl-C ends quietly while it is still being loaded.

Rule to keep: it imports nothing before `leave_quietly`.
"""

from huai_program.signals import leave_quietly


def main() -> None:
    """Run the program."""
    leave_quietly()
    from huai_program.garbage import collect_rarely

    collect_rarely()
    from huai_client.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
