"""`huai-server probe`: compare content of mirrors with what they attest."""

from pathlib import Path

import click

from huai_schema.errors import worst_exit_code
from huai_server.cli.console import Console
from huai_server.cli.options import each_module, modules_options
from huai_server.config.load import load
from huai_server.probe.probe import Probed, probe_mirrors


@click.command()
@modules_options
@each_module(quiet=True)
def command(root: Path, name: str, console: Console) -> int:
    """Fetch some files of the modules NAME from the mirrors that attest them, and compare them.

    Random files of the commit that each mirror attests are fetched by HTTP or rsync and compared
    with their digests: probe_files of each URL, and at most probe_bytes of each mirror. The results
    are shown by the API and on the module's page until the next run. Run it from a timer.

    Exit code 48 means that a mirror serves other content than it attests. If the run before
    did not find the mirror good either, 47 means that it lacks what it attests, and 10 that it
    could not be reached.
    """
    codes = []
    for probed in probe_mirrors(root, load(root), name):
        _show_probe(console, name, probed)
        codes.append(probed.exit_code)
    return worst_exit_code(codes)


def _show_probe(console: Console, name: str, probed: Probed) -> None:
    """Print the verdict on a mirror: as an error if it decides the exit code, else as a result."""
    mirror, probe = probed.mirror, probed.probe
    console.event(
        "probe",
        module=name,
        mirror=mirror,
        verdict=probe.verdict,
        serial=probe.serial,
        files=probe.files,
        path=probe.path or None,
        reason=probe.reason or None,
    )
    where = f"{probe.path}: {probe.reason}" if probe.path else probe.reason
    line = f"{name}: {mirror}: {probe.verdict}" + (f": {where}" if where else "")
    if probed.exit_code:
        console.error(line)
    else:
        console.result(line)
