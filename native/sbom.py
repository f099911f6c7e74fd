"""The list of crates that the engine was built from, as CycloneDX."""

import uuid
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from native.cargo import read_checksums, read_metadata

ROOT = "huai-python"
"""The crate that becomes the Python module."""


class Crate(NamedTuple):
    """A crate that the module cannot be built without."""

    name: str
    version: str
    licence: str
    """SPDX."""
    checksum: str
    """SHA-256 of its source package; empty for a crate of this project."""
    needs: tuple[str, ...]
    """The keys of those that it needs itself."""

    @property
    def key(self) -> str:
        """Name and version: two versions of one crate may be needed."""
        return f"{self.name}@{self.version}"


def read_crates() -> list[Crate]:
    """`ROOT` and all that it needs, sorted; none that only tests need."""
    metadata, checksums = read_metadata(), read_checksums()
    packages = {each["id"]: each for each in metadata["packages"]}
    nodes = {each["id"]: each for each in metadata["resolve"]["nodes"]}
    crates: dict[str, Crate] = {}
    waiting = [id_ for id_, each in packages.items() if each["name"] == ROOT]
    while waiting:
        id_ = waiting.pop()
        if id_ in crates:
            continue
        name, version = packages[id_]["name"], packages[id_]["version"]
        needs = _needed(nodes[id_])
        keys = sorted(f"{packages[each]['name']}@{packages[each]['version']}" for each in needs)
        licence, checksum = packages[id_]["license"] or "", checksums.get((name, version), "")
        crates[id_] = Crate(name, version, licence.replace("/", " OR "), checksum, tuple(keys))
        waiting += needs
    return sorted(crates.values())


def _needed(node: dict[str, Any]) -> list[str]:
    """The ids of what a crate links (kind None) or is built with."""
    return [
        each["pkg"]
        for each in node["deps"]
        if any(kind["kind"] in {None, "build"} for kind in each["dep_kinds"])
    ]


def describe(crates: list[Crate]) -> str:
    """The list as JSON; equal crates give the equal text."""
    components = {crate.key: _component(crate) for crate in crates}
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, repr(crates)))
    bom.metadata.timestamp = datetime.fromtimestamp(0, UTC)
    for crate in crates:
        component = components[crate.key]
        if crate.name == ROOT:
            bom.metadata.component = component
        else:
            bom.components.add(component)
        bom.register_dependency(component, [components[each] for each in crate.needs])
    text: str = JsonV1Dot6(bom).output_as_string(indent=1)
    return text


def _component(crate: Crate) -> Component:
    component = Component(
        type=ComponentType.LIBRARY, name=crate.name, version=crate.version, bom_ref=crate.key
    )
    component.licenses.add(LicenseFactory().make_from_string(crate.licence))
    if crate.checksum:
        component.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=crate.checksum))
        component.purl = PackageURL("cargo", None, crate.name, crate.version)
    return component
