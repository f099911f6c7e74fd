"""The environment of git, as both sides start it: no configuration but a repository's counts."""

import os
from collections.abc import Iterable


def git_environment(
    options: Iterable[tuple[str, str]], *, protocols: str = "none"
) -> dict[str, str]:
    """Return the environment of a git that reads no configuration but `options` and a repository's.

    Options are not on the command line, which all users of the machine can read.  `protocols` are
    those by which git may contact another machine, joined by colons.
    """
    variables = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",  # no .netrc
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_NO_LAZY_FETCH": "1",  # git 2.45 and newer
        "GIT_TERMINAL_PROMPT": "0",
    }
    listed = list(options)
    for number, (key, value) in enumerate(listed):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**variables, "GIT_CONFIG_COUNT": str(len(listed))}
