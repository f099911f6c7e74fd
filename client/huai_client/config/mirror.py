"""A module of a client root: its name, its configuration and its files."""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from huai_client.config.allowed_addresses import AllowedAddresses
from huai_client.config.load import Module
from huai_client.config.tls import TlsFiles
from huai_client.state.paths import ModulePlaces, module_places
from huai_program.durations import seconds

_ENTRIES_MOST = 1 << 27


class ListSettings(Struct, frozen=True):
    """The settings of an upstream that does not run huai, and is listed instead."""

    module: str
    every: float = 3600.0
    """Seconds between two lists of the whole tree, at least, if nothing tells what is new."""
    most: int = _ENTRIES_MOST
    """The most entries of a list: its entries wait on the disk."""
    probe: str = ""
    """The path of a file that the upstream writes with each update; empty: found by its name."""
    source: tuple[str, ...] = ()
    """See `Module.list_source`; empty: the upstream's rsync lists it."""
    shell: tuple[str, ...] = ()
    """The remote shell that starts rsync at HOST:PATH; empty for a daemon."""


class Mirror(Struct, frozen=True):
    """The name, the configuration and the files of a module."""

    name: str
    config: Module
    paths: ModulePlaces

    @classmethod
    def of(cls, root: Path, name: str, config: Module) -> "Mirror":
        """Return the module `name`, a checked name, of the client with the state root `root`."""
        return cls(name, config, module_places(root, name))

    @property
    def root(self) -> Path:
        """The client's state root."""
        return self.paths.root

    @property
    def dest(self) -> Path:
        """The top of the tree."""
        return Path(self.config.dest)

    @property
    def tls(self) -> TlsFiles:
        """The certificates for the hosts that the configuration names."""
        return TlsFiles.of(self.config.tls, self.config.named_urls)

    @property
    def allowed_addresses(self) -> AllowedAddresses:
        """The addresses to which URLs that the configuration does not name may lead."""
        return AllowedAddresses(self.config.named_urls, self.config.allow_networks)

    @property
    def upstream_name(self) -> str:
        """The upstream's name of the module."""
        return self.config.upstream_name or self.name

    @property
    def listing(self) -> ListSettings:
        """The settings of an upstream that does not run huai."""
        config = self.config
        most = config.max_entries or _ENTRIES_MOST
        every = seconds(config.list_every)
        shell = remote_shell(config.rsync_options) if config.source else ()
        return ListSettings(
            self.upstream_name, every, most, config.probe, config.list_source, shell
        )


def remote_shell(options: Sequence[str]) -> tuple[str, ...]:
    """Return the command of rsync's remote shell, as `options`, RSYNC_RSH or the default says."""
    command = os.environ.get("RSYNC_RSH") or "ssh -o BatchMode=yes -o ConnectTimeout=30"
    for number, option in enumerate(options):
        if option in ("-e", "--rsh"):
            command = " ".join(options[number + 1 : number + 2])
        elif option.startswith(("-e", "--rsh=")):
            command = option.removeprefix("-e").removeprefix("--rsh=")
    import shlex  # few modules have such a command

    return tuple(shlex.split(command))
