"""The commit-graph files that `git gc` writes (gitformat-commit-graph(5)).

huai neither writes nor needs them.  One that names a dropped commit makes `git fsck` fail.
"""

from contextlib import suppress
from pathlib import Path

from huai_server.store.git_program import GitFailedError, run_git


def graph_files(repository: Path) -> list[Path]:
    """Return the graph files of a repository; the file that names the others comes first."""
    info = repository / "objects/info"
    chain = info / "commit-graphs"
    files = [chain / "commit-graph-chain", *sorted(chain.glob("*.graph")), info / "commit-graph"]
    return [file for file in files if file.exists()]


def remove_graphs(repository: Path) -> None:
    """Remove all graph files of a repository."""
    for file in graph_files(repository):
        file.unlink()
    with suppress(OSError):  # usually it does not exist
        (repository / "objects/info/commit-graphs").rmdir()


def is_graph_sound(repository: Path) -> bool:
    """True if there are no graph files, or git finds them well-formed and their commits stored.

    Raises `GitMissingError`.
    """
    if graph_files(repository):
        try:
            run_git(repository, ["commit-graph", "verify", "--no-progress"], put=lambda _: None)
        except GitFailedError:
            return False
    return True
