"""The program `huai-rsync`."""

from huai_program.signals import leave_quietly


def main() -> None:
    """Run the program."""
    leave_quietly()
    from huai_program.garbage import collect_rarely

    collect_rarely()
    from huai_client.huai_rsync.main import main as run

    run()


if __name__ == "__main__":
    main()
