"""client.toml: errors are reported with file, module and key, and never written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from huai_client.config.load import ClientConfig, Module, add_module, config_path, load
from huai_client.inspect.config_check import check_config
from huai_program.configuration import ConfigError, UnknownModuleError
from huai_schema.errors import ExitCode

HTTP = "did you mean http://"


def written(root: Path, text: str) -> Path:
    config_path(root).write_text(text, encoding="utf-8")
    return root


def refusal(root: Path, name: str = "m") -> ConfigError | None:
    """Return the error of the file and of its module `name`, if any."""
    try:
        check_config(load(root), name, root)
    except ConfigError as error:
        return error
    return None


def lacking(error: ConfigError | None, *words: str) -> str:
    """Return the words that an error with a hint lacks, or an empty text."""
    if error is None:
        return "accepted"
    message = f"{error.message}\n{error.hint}"
    missing = [word for word in words if word not in message]
    return f"{message!r} lacks {missing}" if missing or not error.hint else ""


MISTAKES: dict[str, tuple[str, ...]] = {
    "modules = 5\n": ("modules must be a table", "[modules.NAME]"),
    "modulse = 5\n": ("unknown key 'modulse'", "'modules'"),
    "[modules.m]\nurl = 'http://h'\n": ("[modules.m]: dest: is missing", "dest = "),
    "[modules.'a b']\nurl = 'http://h'\ndest = '/srv/m'\n": ("'a b'", "for example: debian"),
    '[modules.m]\nurl = "a"\nurl = "b"\n': ("line 3: url is repeated",),
    "[modules.m]\n[modules.m]\n": ("line 2: [modules.m] is repeated, first in line 1",),
    '[modules.m]\nurl = "a\n': ("is a quote missing?",),
    "[modules.m]\nurl = a\n": ("strings need quotes",),
    "[modules.m]\nurl = \n": ("strings need quotes",),
    "[modules.m\n": ("must be TOML",),
}


def test_a_file_that_cannot_be_read_says_what_to_look_for(tmp_path: Path) -> None:
    faults = {
        text: fault
        for text, words in MISTAKES.items()
        if (fault := lacking(refusal(written(tmp_path, text)), "client.toml", *words))
    }
    assert faults == {}


VALUES: dict[str, tuple[str, str]] = {
    "url = 5": ("url: expected", "http://"),
    'streams = "2"': ("streams: expected a whole number", "streams = 2"),
    "streams = 0": ("streams: 0 is less than 1", "streams = 2"),
    "streams = 100000": ("streams: 100000 is more than 64", "streams = 2"),
    "timeout = 0": ("timeout: 0 is less than 1", "timeout = 600"),
    "timeout = -1": ("timeout: -1 is less than 1", "timeout = 600"),
    "batch_size = 0": ("batch_size: 0 is not a size in bytes above 0", "batch_size = 1073741824"),
    "bwlimit = -1": ("bwlimit: -1 is less than 0", "bwlimit = "),
    'trash = "7x"': ("trash: '7x' is not a duration", 'trash = "7d"'),
    "trash = -5": ("trash: -5 is not a duration", 'trash = "7d"'),
    'duplicates = "link"': ("duplicates: 'link' is not one of its values", '"hardlink"'),
    'filter = "- x"': ("filter: expected a list in brackets", 'filter = ["- *.iso"]'),
    'filter = ["nonsense"]': ("filter: ", "rule"),
    'publish = ["nonsense x"]': ("publish: publish rule", "pointer"),
    "stream = 3": ("unknown key 'stream'", "did you mean 'streams'?"),
    'max_delet = "5"': ("unknown key 'max_delet'", "did you mean 'max_delete'?"),
    'max_delete = "ten"': (
        "max_delete: 'ten' is neither a count nor a share",
        "5000 or 10%",
    ),
    'max_delete_in = {"/" = 5}': ("max_delete_in: '/' is the whole tree", "max_delete"),
    'max_delete_in = {"/a" = "x"}': ("max_delete_in: 'x' is neither", "10%"),
    'content_urls = ["mirror.example/tools"]': ("content_urls: not a content URL", "rsync://HOST"),
    'content_urls = ["ftp://x"]': ("content_urls: not a content URL: 'ftp://x'", "rsync://HOST"),
    "content_urls = [5]": ("content_urls[0]: expected a text in quotes or a table", "priority"),
    'content_urls = [{ uri = "/" }]': (
        "content_urls[0]: object contains unknown field",
        "priority",
    ),
    "content_urls = [{ priority = 2 }]": ("content_urls[0]: ", "url ="),
    'content_urls = [{ url = "/", priority = 0 }]': (
        "content_urls[0].priority: 0 is less than 1",
        "priority",
    ),
    'content_urls = [{ url = "/", share = -1 }]': (
        "content_urls[0].share: -1 is less than 0",
        "priority",
    ),
    'content_urls = [{ url = "nowhere" }]': ("content_urls: not a content URL", "rsync://HOST"),
    'rsync_options = ["--delete"]': ("rsync_options: rsync option '--delete'", "huai itself"),
    'rsync_options = ["-vn"]': ("rsync_options: rsync option '-vn'", "huai itself selects"),
    'rsync_options = ["--bogus"]': ("rsync_options: rsync: --bogus: unknown option", "rsync(1)"),
    'reuse_from = ["nosuch"]': ("reuse_from: 'nosuch' is not another module", "known: "),
    'protect = ["["]': ("protect: '[' cannot match any path", "for rsync's --exclude"),
    'protect = [""]': ("protect: '' cannot match any path", "for rsync's --exclude"),
    'upstream_name = "../x"': ("upstream_name: ", "for example: debian"),
    'verify = "require"': ('verify = "require" needs keys', "key show"),
    "threshold = 2": ("threshold = 2 needs keys", "write keys"),
    'allow_networks = ["10.0.0.0/99"]': ("allow_networks: ", "10."),
    'http_headers = "/no/such"': ("http_headers: ", "/no/such"),
}


def module_text(*lines: str) -> str:
    """Return the table of a module, with `lines` before the required keys."""
    keys = {line.partition(" ")[0] for line in lines}
    needed = {"url": 'url = "http://h"', "dest": 'dest = "/srv/m"'}
    rest = [line for key, line in needed.items() if key not in keys]
    return "\n".join(["[modules.m]", *lines, *rest, ""])


def test_a_wrong_value_is_named_with_its_module_and_key(tmp_path: Path) -> None:
    faults = {}
    for line, (message, hint) in VALUES.items():
        error = refusal(written(tmp_path, module_text(line)))
        if fault := lacking(error, f"client.toml: [modules.m]: {message}", hint):
            faults[line] = fault
    assert faults == {}


SPELT: list[tuple[str, Any]] = [
    *(("delete_after", 3600), ("trash", 7), ("max_age", 60), ("max_age", "1w")),
    *(("queue_time", 60), ("max_delete", 5), ("max_delete_in", {"/a": 5, "/*": "5%"})),
    *(("rsync_options", ["-z", "--rsh=ssh -p 22"]), ("protect", ["[a]x"]), ("protect", ["a\\[b"])),
]


def test_values_may_be_spelt_as_the_page_says(tmp_path: Path) -> None:
    faults = {}
    for key, value in SPELT:
        text = json.dumps(value)
        line = f"{key} = {text.replace(': ', ' = ') if isinstance(value, dict) else text}"
        if error := refusal(written(tmp_path, module_text(line))):
            faults[line] = error.message
    assert faults == {}


ADDRESSES: dict[str, str] = {
    "": "check that the variables of the shell are set",
    "mirror.example:8440": f"{HTTP}mirror.example:8440?",
    "mirror.example": f"{HTTP}mirror.example:8440?",
    "user@mirror.example::pub": "did you mean rsync://mirror.example/pub?",
    "[::1]:8440": f"{HTTP}[::1]:8440?",
    "htp://mirror.example:8440": "did you mean 'http'?",
    "rsync://mirror.example": "rsync://HOST/MODULE",
    "rsync://mirror.example/": "rsync://HOST/MODULE",
    "rsync:///tools": "rsync://HOST:PORT/MODULE",
    "rsync://h:port/tools": "rsync://HOST:PORT/MODULE",
    "rsync://me:secret@h/tools": "put the password into RSYNC_PASSWORD",
    "ftp://user:secret@mirror.example/": f"{HTTP}mirror.example:8440?",
    "http://": "has no host",
    "http://[::1": "http://HOST:PORT",
    "http://h:port/": "port",
    "http://h/ b": "a space",
}


def test_an_address_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    faults = {}
    for url, meant in ADDRESSES.items():
        for urls in (url, ("http://h", url)):
            error = refused_module(tmp_path, Module(url=urls, dest="/srv/m"))
            fault = lacking(error, "[modules.m]: url: ", meant)
            if fault or "secret" in str(error):
                faults[url] = fault or "shows a password"
    assert faults == {}


def refused_module(root: Path, module: Module, **others: Module) -> ConfigError | None:
    try:
        check_config(ClientConfig({**others, "m": module}), "m", root)
    except ConfigError as error:
        return error
    return None


def test_an_address_that_git_understands_is_accepted(tmp_path: Path) -> None:
    urls = (
        *("http://h", "https://u:p@h:1/x", "ssh://h/x.git", "git://h/x.git", "file:///srv/x.git"),
        *("/srv/x.git", "git@h:x.git", "h:x/y.git", "http://[::1]:8440/"),
    )
    errors = {url: refused_module(tmp_path, Module(url=url, dest="/srv/m")) for url in urls}
    assert errors == dict.fromkeys(urls)


def test_a_dest_that_nothing_should_be_mirrored_to_is_refused(tmp_path: Path) -> None:
    inside = "must not contain each other"
    dests = {
        **dict.fromkeys(("", " "), "check that the variables"),
        **dict.fromkeys(("/", "//", "/srv/.."), "the root directory"),
        "/srv/a\0b": "contains a NUL",
        **dict.fromkeys((f"{tmp_path}", f"{tmp_path}/modules/m", f"{tmp_path.parent}"), inside),
    }
    faults = {}
    for dest, message in dests.items():
        error = refused_module(tmp_path, Module(url="http://h", dest=dest))
        if fault := lacking(error, "[modules.m]: dest: ", message):
            faults[dest] = fault
    assert faults == {}


def test_trees_of_two_modules_are_apart(tmp_path: Path) -> None:
    root, tree = tmp_path / "root", tmp_path / "dest"
    outer = Module(url="http://h", dest=str(tree))
    for dest in (tree, tree / "below", f"{tree}/x/..", tmp_path / "x/../dest"):
        error = refused_module(root, Module(url="http://h", dest=str(dest)), one=outer)
        assert lacking(error, "[modules.m]: dest: ", "the tree of one") == ""
    link = tmp_path / "link"
    tree.mkdir()
    link.symlink_to(tree)
    through = Module(url="http://h", dest=str(link / "below"))
    assert lacking(refused_module(root, through, one=outer), "the tree of one") == ""
    keeper = Module(url="http://h", dest=str(tree), protect=("/below",))
    assert refused_module(root, through, one=keeper) is None
    beside = Module(url="http://h", dest=f"{tree}2")
    assert refused_module(root, beside, one=outer) is None


def test_a_name_that_cannot_be_one_is_not_written(tmp_path: Path) -> None:
    for name in ("bad name", "../x", "", ".x", "x.git"):
        with pytest.raises(ConfigError, match="cannot be a module's name") as caught:
            add_module(tmp_path, name, Module(url="http://h", dest="/srv/m"))
        assert caught.value.hint
    assert not config_path(tmp_path).exists()


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    add_module(tmp_path, "m", Module(url="http://h", dest="/a"))
    before = config_path(tmp_path).read_bytes()
    with pytest.raises(ConfigError, match="exists already"):
        add_module(tmp_path, "m", Module(url="http://h", dest="/b"))
    assert config_path(tmp_path).read_bytes() == before


def test_an_unknown_module_is_told_its_neighbours(tmp_path: Path) -> None:
    add_module(tmp_path, "centos", Module(url="http://h", dest="/srv/centos"))
    with pytest.raises(UnknownModuleError) as caught:
        load(tmp_path).module("cent0s")
    assert "'centos'" in caught.value.hint
    assert (caught.value.exit_code, ConfigError.exit_code) == (
        ExitCode.UNKNOWN_MODULE,
        ExitCode.CONFIG,
    )


def test_a_file_that_may_not_be_read_is_no_empty_one(tmp_path: Path) -> None:
    assert load(tmp_path).modules == {}
    config_path(tmp_path).mkdir()
    with pytest.raises(ConfigError, match="Is a directory"):
        load(tmp_path)
    config_path(tmp_path).rmdir()
    config_path(tmp_path).write_bytes(b"# \xff\n")
    with pytest.raises(ConfigError, match=r"client\.toml"):
        load(tmp_path)
    os.truncate(config_path(tmp_path), 0)
    assert load(tmp_path).modules == {}
