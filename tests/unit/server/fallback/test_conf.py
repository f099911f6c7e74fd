"""The text of rsyncd.conf, with the usual settings of mirrors."""

from pathlib import Path

import pytest

from huai_program.configuration import ConfigError
from huai_server.config.tables import Fallback, Module, ModuleFallback
from huai_server.fallback.conf import FallbackModule, render

FOLDER = Path("/run")


def text(settings: Fallback | None = None, *, privileged: bool = True, **values: object) -> str:
    module = Module("/srv/m", fallback=ModuleFallback(**values))  # type: ignore[arg-type]
    modules = {"m": FallbackModule(module, Path("/run/fallback/m/.redirected"))}
    return render(settings or Fallback(), modules, FOLDER, privileged=privileged)


def test_the_customs() -> None:
    lines = text().splitlines()
    assert lines[1:11] == [
        "uid = nobody",  # prose: the name of a user
        "gid = *",
        "use chroot = yes",
        "read only = yes",
        "munge symlinks = no",
        "max connections = 50",
        "timeout = 600",
        "ignore nonreadable = yes",
        "reverse lookup = no",
        "refuse options = checksum compress-level compress-threads",
    ]
    assert lines[11].startswith("dont compress = *.gz *.tgz ")
    assert lines[-4:-1] == [
        "[m]",
        "path = /run/fallback/m/.redirected",
        "lock file = /run/rsyncd.lock-m",
    ]
    assert lines[-1] == "list = yes"
    assert "log format = %o [%a] %m %b %f %l" in lines
    assert "transfer logging = yes" in lines


def test_what_an_administrator_says() -> None:
    """Empty values leave rsync's default."""
    config = text(Fallback(motd_file="/etc/motd", dont_compress=("*.a", "*.b"), timeout=7))
    assert {"motd file = /etc/motd", "dont compress = *.a *.b", "timeout = 7"} < set(
        config.split("\n")
    )
    unsaid = text(Fallback(dont_compress=()))
    assert "motd file" not in unsaid
    assert "dont compress" not in unsaid


def test_without_root_the_text_names_no_user() -> None:
    assert "uid =" not in text(privileged=False)


def test_what_a_module_says_itself() -> None:
    config = text(
        comment="The mirror",
        list=False,
        max_connections=3,
        auth_users=("a", "b"),
        secrets_file="/etc/secrets",
        hosts_allow=("192.0.2.0/24",),
        hosts_deny=("*",),
        extra="exclude = /private\nlog file = /var/log/m\n",
    )
    module = config[config.index("[m]") :].splitlines()
    assert module[3:] == [
        *("comment = The mirror", "list = no", "max connections = 3", "auth users = a b"),
        *("secrets file = /etc/secrets", "hosts allow = 192.0.2.0/24", "hosts deny = *"),
        *("exclude = /private", "log file = /var/log/m"),
    ]


def test_what_more_lines_for_a_module_cannot_say(subtests: pytest.Subtests) -> None:
    for extra in [
        *("path = /", "  P a t h=/", "exclude = /x\npath = /", "pa\\\nth = /", "[other]\npath = /"),
        *("&include /etc/other.conf", "exclude = /x\\"),
        *("# no \\\npath = /", " ;no\\ \npath = /", "exclude = x \\\n# b \\\npath = /"),
    ]:
        with subtests.test(extra=extra):
            with pytest.raises(ConfigError, match="is not allowed here"):
                text(extra=extra)


def test_more_lines_for_all_modules_may_hold_another() -> None:
    settings = Fallback(extra="[other]\npath = /srv/other")
    assert "[other]\npath = /srv/other\n\n[m]\n" in text(settings)
    with pytest.raises(ConfigError, match="is not allowed here"):
        text(Fallback(extra="[other]\npath = /srv/other\\"))


@pytest.mark.parametrize("path", ["/a\nuid = root", "/a ", "/a\\", "/%HOME%"])
def test_a_path_that_rsync_would_read_otherwise(path: str) -> None:
    modules = {"m": FallbackModule(Module(path), Path(path))}
    with pytest.raises(ConfigError, match="cannot hold `path`"):
        render(Fallback(), modules, FOLDER, privileged=True)


@pytest.mark.parametrize("names", [("global",), ("Global",), ("m", "Data", "data")])
def test_names_that_rsync_takes_for_another_s(names: tuple[str, ...]) -> None:
    modules = {name: FallbackModule(Module("/srv"), Path("/srv")) for name in names}
    with pytest.raises(ConfigError, match="cannot distinguish the module"):
        render(Fallback(), modules, FOLDER, privileged=True)


def test_percent_signs_that_mean_nothing_to_rsync() -> None:
    assert "comment = 100% of the 50% that is new" in text(comment="100% of the 50% that is new")
