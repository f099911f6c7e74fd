"""`[modules.NAME.hooks]`: its values, and the errors that are reported."""

from pathlib import Path

import pytest

from huai_client.config import load as config
from huai_client.inspect.config_check import check_config
from huai_program.configuration import ConfigError

MODULE = '[modules.m]\nurl = "http://h:8440"\ndest = "/srv/m"\n'
TABLE = f"{MODULE}[modules.m.hooks]\n"


def written(root: Path, text: str) -> config.Module:
    config.config_path(root).write_text(text, encoding="utf-8")
    return config.load(root).module("m")


def test_a_path_or_a_list_of_words(tmp_path: Path) -> None:
    lines = 'before = "/bin/true"\non_change = ["/bin/echo", "a b", ""]\ntimeout = 90\n'
    hooks = written(tmp_path, TABLE + lines).hooks
    assert hooks.command("before") == ("/bin/true",)
    assert hooks.command("on_change") == ("/bin/echo", "a b", "")
    assert hooks.command("after") == ()
    assert (hooks.timeout, hooks.failure) == ("90", "fail")


MISTAKES = {
    f"{MODULE}hooks = 1\n": ("[modules.m.hooks]", "table"),
    f'{TABLE}on-change = "/x"\n': ("unknown key 'on-change'", "'on_change'"),
    f"{TABLE}before = 1\n": ("before:", 'before = "/usr'),
    f'{TABLE}before = ""\n': ("before:", 'before = "/usr'),
    f"{TABLE}after = []\n": ("after:", 'after = "/usr'),
    f'{TABLE}after = ["/x", 1]\n': ("after[1]:", 'after = "/usr'),
    f'{TABLE}timeout = "0"\n': ("timeout:", "not a duration above 0", '"10m"'),
    f"{TABLE}timeout = -1\n": ("timeout:", "not a duration above 0"),
    f'{TABLE}timeout = "soon"\n': ("timeout:", "not a duration above 0"),
    f'{TABLE}failure = "ignore"\n': ("failure:", '"warn"'),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        written(tmp_path, text)
    message = f"{caught.value.message} {caught.value.hint}"
    for word in ("client.toml", *MISTAKES[text]):
        assert word in message


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ('"purge"', "'purge' is not an absolute path"),
        ('"./purge"', "'./purge' is not an absolute path"),
        ('"/nonexistent/purge"', "/nonexistent/purge is not a program"),
        ('"/etc/passwd"', "/etc/passwd is not a program"),
        ('"/etc"', "/etc is not a program"),
        ('["/bin/echo", "a\\u0000b"]', "an argument contains a NUL byte"),
    ],
)
def test_programs_that_cannot_be_run_are_found_before(
    tmp_path: Path, command: str, message: str
) -> None:
    written(tmp_path, f"{TABLE}after = {command}\n")
    with pytest.raises(ConfigError) as caught:
        check_config(config.load(tmp_path), "m", tmp_path)
    assert f"[modules.m.hooks]: after: {message}" in caught.value.message
    assert caught.value.hint
