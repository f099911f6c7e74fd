"""Why nothing can be signed."""

from huai_schema.errors import ExitCode, HuaiError


class SigningError(HuaiError):
    """No signature, so no commit."""

    exit_code = ExitCode.UNSIGNED
