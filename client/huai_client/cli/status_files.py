"""Writes the status files of the client: those in `[status]`.

Rule: if one cannot be written, the other one still is.
"""

from pathlib import Path

from huai_client.config.load import ClientConfig, StatusFiles
from huai_client.inspect.prometheus import StatusFileError


def write_status_files(
    files: StatusFiles, root: Path, config: ClientConfig
) -> dict[str, StatusFileError]:
    """Write the configured files; return errors by key."""
    failures: dict[str, StatusFileError] = {}
    if files.prometheus:
        from huai_client.inspect.prometheus import write_prometheus

        try:
            write_prometheus(Path(files.prometheus), root, config.modules)
        except StatusFileError as error:
            failures["prometheus"] = error
    if files.html:
        from huai_client.inspect.status_page import write_status_page

        try:
            write_status_page(Path(files.html), root, config.modules)
        except StatusFileError as error:
            failures["html"] = error
    return failures
