"""The error of signing."""

from huai_schema.errors import ExitCode, HuaiError


class SigningError(HuaiError):
    """A signature cannot be made or is not valid, so the commit is not made."""

    exit_code = ExitCode.UNSIGNED
