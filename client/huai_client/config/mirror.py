"""One module of one client root: its name, its configuration and its files."""

from pathlib import Path
from typing import NamedTuple

from huai_client.config.load import Module
from huai_client.config.reach import Reach
from huai_client.config.tls import TlsFiles
from huai_client.state.paths import ModulePlaces, module_places


class Mirror(NamedTuple):
    """What all work on one tree begins with."""

    name: str
    config: Module
    paths: ModulePlaces

    @classmethod
    def of(cls, root: Path, name: str, config: Module) -> "Mirror":
        """The module `name`, a checked name, of the client whose state root is `root`."""
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
        """Own certificates, for the hosts that the configuration names."""
        return TlsFiles.of(self.config.tls, self.config.named_urls)

    @property
    def reach(self) -> Reach:
        """The addresses that URLs may lead to which the configuration does not name."""
        return Reach(self.config.named_urls, self.config.allow_networks)

    @property
    def upstream_name(self) -> str:
        """What the upstream calls the module."""
        return self.config.upstream_name or self.name
