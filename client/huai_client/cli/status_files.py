"""The files in which the client tells others how it stands: what `[status]` names.

Rule: one that cannot be written keeps none of the others from being so.
"""

from pathlib import Path

from huai_client.config.load import ClientConfig, StatusFiles
from huai_client.inspect.status_file import StatusFileError


def write_status_files(
    wanted: StatusFiles, root: Path, config: ClientConfig
) -> dict[str, StatusFileError]:
    """Write those that are wanted; by key, why one could not be."""
    failures: dict[str, StatusFileError] = {}
    if wanted.prometheus:
        from huai_client.inspect.prometheus import write_prometheus

        try:
            write_prometheus(Path(wanted.prometheus), root, config.modules)
        except StatusFileError as error:
            failures["prometheus"] = error
    if wanted.html:
        from huai_client.inspect.status_page import write_status_page

        try:
            write_status_page(Path(wanted.html), root, config.modules)
        except StatusFileError as error:
            failures["html"] = error
    return failures
