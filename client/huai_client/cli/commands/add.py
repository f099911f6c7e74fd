"""`huai-client add`: write a module into the configuration."""

import os
from pathlib import Path

import click

from huai_client.config.load import (
    ClientConfig,
    Module,
    add_module,
    check_config_name,
    config_path,
    load,
    make_root,
)
from huai_client.config.mirror import Mirror
from huai_client.config.tls import Tls, convert_tls
from huai_client.metadata.served import check_first_url
from huai_client.tree.destination import MissingDestinationError, check_type
from huai_program.cli.options import json_option
from huai_program.ending import print_json


@click.command()
@click.argument("name")
@click.argument("url")
@click.argument("dest")
@click.option(
    "--other-url",
    "other_urls",
    multiple=True,
    metavar="URL",
    help="Try this if URL does not respond: another server of the same metadata. May be given "
    "several times, best first.",
)
@click.option(
    "--content-url",
    "content_urls",
    multiple=True,
    metavar="URL",
    help="Fetch content from here instead of where the upstream says: rsync://HOST/MODULE, "
    "https://HOST/PATH, HOST:PATH (ssh) or a local path. May be given several times, best first.",
)
@click.option(
    "--upstream-name",
    default="",
    metavar="NAME",
    help="The module's name on the upstream, if not NAME.",
)
@click.option(
    "--tls-ca",
    default="",
    metavar="FILE",
    help="The CA certificates to trust for the hosts of URL and content URLs, instead of the "
    "system's.",
)
@click.option(
    "--tls-certificate",
    default="",
    metavar="FILE",
    help="The certificate to show to these hosts, with its chain; needs --tls-key.",
)
@click.option(
    "--tls-key", default="", metavar="FILE", help="Its private key, which other users may not read."
)
@click.option(
    "--check/--no-check",
    default=True,
    help="Ask the upstream whether it has the module, and warn if not (5 s at most); or do not.",
)
@json_option
@click.pass_obj
def command(
    root: Path,
    name: str,
    url: str,
    dest: str,
    other_urls: tuple[str, ...],
    content_urls: tuple[str, ...],
    upstream_name: str,
    tls_ca: str,
    tls_certificate: str,
    tls_key: str,
    check: bool,
    as_json: bool,
) -> None:
    """Add module NAME of the upstream at URL, to be mirrored to DEST.

    URL is a huai server's base address, any git URL of a metadata repository, or rsync://HOST/MODULE
    of an upstream that does not run huai. DEST must exist before the first sync. It may hold a tree
    that rsync made, which is adopted: only what really differs is fetched.
    """
    module = Module(
        url=(url, *other_urls) if other_urls else url,
        dest=os.path.abspath(dest) if dest.strip() else "",
        content_urls=content_urls,
        upstream_name=upstream_name,
        tls=_tls(tls_certificate, tls_key, tls_ca),
    )
    _check(root, name, module)
    missing = _missing(module.dest)
    make_root(root)
    add_module(root, name, module)
    listing, unknown = check_first_url(Mirror.of(root, name, module)) if check else ("", "")
    warnings = [text for text in (missing, unknown) if text]
    if as_json:
        warning = "; ".join(warnings) or None
        print_json("added", module=name, dest=module.dest, warning=warning, listing=listing or None)
        return
    click.echo(f"{name}: added to {config_path(root)}")
    if listing:
        click.echo(f"{name}: {listing}")
    for text in warnings:
        click.echo(f"huai-client: {name}: {text}", err=True)
    click.echo(f"next: huai-client sync {name}")


def _tls(certificate: str, key: str, ca: str) -> Tls | None:
    """Return the TLS table with absolute paths, or None without any.

    Raises `ConfigError` if invalid.
    """
    paths = {"certificate": certificate, "key": key, "ca": ca}
    absolute = {name: os.path.abspath(path) for name, path in paths.items() if path}
    return convert_tls("--tls", absolute) if absolute else None


def _missing(dest: str) -> str:
    """Return a warning if DEST does not exist, else an empty text.

    Raises `DestinationError` if it is not a directory, or cannot be reached.
    """
    try:
        check_type(Path(dest))
    except MissingDestinationError as error:
        return f"{error.message}, and a sync does not create it ({error.hint})"
    return ""


def _check(root: Path, name: str, module: Module) -> None:
    """Raise the error of a sync that would refuse the settings, before anything is written.

    Checks nothing of a module that exists already: `add_module` refuses it.
    """
    from huai_client.inspect.config_check import check_config

    config = load(root)
    if check_config_name(name) not in config.modules:  # else `add_module` says so
        check_config(ClientConfig({**config.modules, name: module}), name, root)
