"""The list of crates that goes into a wheel."""

import json

from native.cargo import read_checksums
from native.sbom import ROOT, Crate, describe, read_crates

CRATES = [
    Crate("base", "1.0.0", "MIT OR Apache-2.0", "ab" * 32, ()),
    Crate(ROOT, "0.1.0", "Apache-2.0", "", ("base@1.0.0",)),
]


def test_the_list_is_cyclonedx_with_checksums_and_dependencies() -> None:
    document = json.loads(describe(CRATES))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    (base,) = document["components"]
    assert base["purl"] == "pkg:cargo/base@1.0.0"
    assert base["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert base["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert document["metadata"]["component"]["name"] == ROOT
    needs = {each["ref"]: each.get("dependsOn", []) for each in document["dependencies"]}
    assert needs == {f"{ROOT}@0.1.0": ["base@1.0.0"], "base@1.0.0": []}


def test_equal_crates_give_the_equal_text() -> None:
    assert describe(CRATES) == describe(list(CRATES))
    assert describe(CRATES) != describe(
        [CRATES[0]._replace(version="1.0.1"), CRATES[1]._replace(needs=("base@1.0.1",))]
    )


def test_what_only_tests_need_is_not_in_the_list() -> None:
    crates = {crate.name: crate for crate in read_crates()}
    assert {
        *(ROOT, "huai-format", "huai-git", "huai-sys", "huai-tree", "pyo3", "rustix", "zlib-rs"),
    } <= crates.keys()
    assert crates.keys().isdisjoint({"proptest", "miniz_oxide"})
    assert crates["pyo3"].checksum == read_checksums()["pyo3", crates["pyo3"].version]
    assert "huai-tree@" + crates["huai-tree"].version in crates[ROOT].needs
