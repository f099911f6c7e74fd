"""`[modules.NAME.proofs.PROFILE]`: its values, and the errors that are reported."""

from pathlib import Path

import pytest

from huai_client.config import load as config
from huai_client.config.hooks import Proof
from huai_client.inspect.config_check import check_config
from huai_program.configuration import ConfigError
from huai_program.durations import TimeLimit

MODULE = '[modules.m]\nurl = "http://h:8440"\ndest = "/srv/m"\n'
TABLE = f"{MODULE}[modules.m.proofs.apt]\n"


def written(root: Path, text: str) -> config.Module:
    config.config_path(root).write_text(text, encoding="utf-8")
    return config.load(root).module("m")


def test_keyrings_or_a_program(tmp_path: Path) -> None:
    text = TABLE + 'gpgv = "/a"\n[modules.m.proofs.rpm]\ncommand = ["/b", ""]\ntimeout = 9\n'
    proofs = written(tmp_path, text).proofs
    assert (proofs["apt"].keyrings, proofs["apt"].words) == (("/a",), ())
    assert (proofs["rpm"].keyrings, proofs["rpm"].words) == ((), ("/b", ""))
    assert (proofs["apt"].timeout, proofs["rpm"].timeout) == ("1m", "9")


def test_what_add_writes_is_read_again(tmp_path: Path) -> None:
    proofs = {
        "apt": Proof(gpgv=("/a", "/b")),
        "conda": Proof(command="/bin/true", timeout=TimeLimit("5")),
    }
    module = config.Module(url="http://h:8440", dest="/srv/m", proofs=proofs)
    config.add_module(tmp_path, "m", module)
    assert config.load(tmp_path).module("m") == module


MISTAKES = {
    f"{MODULE}proofs = 1\n": ("[modules.m.proofs] must be a table", "[modules.m.proofs.apt]"),
    f"{MODULE}proofs.apt = 1\n": ("[modules.m.proofs.apt]", "table"),
    TABLE: ("either gpgv or command",),
    f'{TABLE}gpgv = "/a"\ncommand = "/b"\n': ("not both",),
    f'{TABLE}gpg = "/a"\n': ("unknown key 'gpg'", "'gpgv'"),
    f"{TABLE}gpgv = 1\n": ("gpgv:", 'gpgv = "/usr'),
    f"{TABLE}gpgv = []\n": ("gpgv:", 'gpgv = "/usr'),
    f'{TABLE}command = "/b"\ntimeout = "0"\n': ("not a duration above 0", '"1m"'),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        written(tmp_path, text)
    message = f"{caught.value.message} {caught.value.hint}"
    assert all(word in message for word in MISTAKES[text]), message


USELESS = {
    ("debian", 'gpgv = "KEYS"'): ("'debian' is not a profile",),
    ("generic", 'gpgv = "KEYS"'): ("'generic' is not a profile",),
    ("conda", 'gpgv = "KEYS"'): ("does not know the signed files", "command"),
    ("apt", 'gpgv = "keys.gpg"'): ("not an absolute path",),
    ("apt", 'gpgv = ["KEYS", "/nowhere/keys.gpg"]'): ("No such file",),
    ("apt", 'gpgv = "/"'): ("Is a directory",),
    ("apt", 'gpgv = "ARMORED"'): ("armored", "--dearmor"),
    ("apt", 'command = "gpgv"'): ("not an absolute path",),
    ("apt", 'command = ["/nowhere/gpgv"]'): ("not a program",),
}


@pytest.mark.parametrize(("profile", "line"), USELESS)
def test_what_cannot_work_is_found_before_a_sync(tmp_path: Path, profile: str, line: str) -> None:
    (tmp_path / "KEYS").write_bytes(b"\x99keys")
    (tmp_path / "ARMORED").write_bytes(b"\n-----BEGIN PGP PUBLIC KEY BLOCK-----\n")
    paths = line.replace('"KEYS', f'"{tmp_path}/KEYS').replace('"ARM', f'"{tmp_path}/ARM')
    written(tmp_path, f"{MODULE}[modules.m.proofs.{profile}]\n{paths}\n")
    with pytest.raises(ConfigError) as caught:
        check_config(config.load(tmp_path), "m", tmp_path)
    message = f"{caught.value.message} {caught.value.hint}"
    words = (f"proofs.{profile}]", *USELESS[profile, line])
    assert all(word in message for word in words), message


def test_without_gpgv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = tmp_path / "keys.gpg"
    keyring.write_bytes(b"\x99keys")
    written(tmp_path, f'{TABLE}gpgv = "{keyring}"\n')
    check_config(config.load(tmp_path), "m", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="gpgv is missing"):
        check_config(config.load(tmp_path), "m", tmp_path)
