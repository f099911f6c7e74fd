"""The static files of a module: its own, and the copies of server.toml and `--to`.

The files of each place are made separately, one place after the other, the module's own first.  A
failure at one place does not hold up the others.
"""

import time
from math import inf
from pathlib import Path

from huai_program.configuration import ConfigError
from huai_program.locking import locked
from huai_schema.errors import HuaiError
from huai_server.config.load import ServerConfig, load
from huai_server.config.place import is_bucket, parse_bucket
from huai_server.state.errors import RequirementError, storage_errors
from huai_server.state.paths import module_places
from huai_server.static.folder import StaticFolder, module_folder
from huai_server.static.publish import Published, publish
from huai_server.static.target import Target
from huai_server.static.update import StaticUpdate
from huai_server.store.module_state import committed_repository
from huai_server.store.repository import metadata_errors


def publish_module(
    root: Path, name: str, to: str = "", *, configured: bool = False, wait: float = 0
) -> Published:
    """Write the static files of the newest commit to `to`, a folder or bucket, where they differ.

    An empty `to` is the module's repository.  Raises `LockedError` after `wait` seconds,
    `ConfigError` if `to` must be `configured` and is no longer, and the errors of `publish` and of
    the place.
    """
    places = module_places(root, name)
    repository = committed_repository(name, places)
    lock = places.copying if to else places.publishing
    with storage_errors(Path(to) if to else places.repository), locked(lock, wait=wait):
        # Only now: another publication may have taken hours.
        config = load(root)
        module = config.module(name)
        if configured and to not in ("", *config.static_places(name)):
            raise ConfigError(
                f"{name}: {to}: not published, since server.toml no longer names this place",
                hint="delete the files there, if others should not read them",
            )
        target = _target(to, name, config, places.drafts) if to else None
        with metadata_errors(name):
            return publish(
                repository,
                target,
                module.retention,
                now=time.time(),
                content_urls=module.relay_urls,
            )


def publish_after_commit(root: Path, name: str) -> StaticUpdate:
    """Write the static files of the newest commit to the repository and all copies.

    Errors are in the result, which names only the copies.  Waits for other publications of the
    module without a time limit.
    """
    done: list[tuple[str, Published]] = []
    failures: list[HuaiError] = []
    for place in ("", *load(root).static_places(name)):
        try:
            # A running publication may be of an older commit, and would not publish this one.
            published = publish_module(root, name, place, configured=True, wait=inf)
        except HuaiError as error:
            failures.append(error)
        else:
            done += [(place, published)] if place else []
    return StaticUpdate(tuple(done), tuple(failures))


def _target(to: str, name: str, config: ServerConfig, drafts: Path) -> Target:
    """Return the target of the module's files in the folder or bucket `to`; makes nothing yet.

    Raises `RequirementError` and `NoBucketError`.
    """
    if not is_bucket(to):
        closed = config.module(name).is_private
        return StaticFolder(module_folder(Path(to), name), Path(to), closed=closed)
    place = parse_bucket(to)
    try:
        from huai_server.static.bucket import Bucket  # few need it
    except ModuleNotFoundError as error:
        raise RequirementError(
            f"{to}: {error.name} is not installed, but writing to a bucket needs it",
            hint="pip install 'huai[s3]'",
        ) from error
    return Bucket(place, name, endpoint=config.static_endpoint(name), drafts=drafts)
