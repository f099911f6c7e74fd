"""`huai-client verify`: compare trees with their applied commits."""

import re
import secrets
from pathlib import Path

import click

from huai_client.cli.console import Console
from huai_client.cli.logfile import LogFile, log_failures
from huai_client.cli.options import (
    choose_modules,
    do_each,
    log_option,
    many_options,
    modules_argument,
    parse_path_argument,
    wait_option,
)
from huai_client.cli.run_report import ConsoleReport
from huai_client.config.load import load
from huai_client.config.mirror import Mirror
from huai_client.inspect.config_check import check_config
from huai_client.run.options import Deadline, SyncOptions
from huai_client.sync.run import Run
from huai_client.verify.queue import VerifyRequest
from huai_program.cli.options import engine_option, json_option, parse_duration
from huai_schema.errors import ExitCode

_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%")
_SEEDS = 1 << 32
"""The number of seeds: few enough that one can be typed again."""


def _share(_context: click.Context, _parameter: click.Parameter, text: str | None) -> float | None:
    """Parse `--sample` to a number from 0 to 1; None without it.

    Raises `BadParameter` if it is malformed.
    """
    if text is None:
        return None
    match = _SHARE.fullmatch(text)
    share = float(match[1]) / 100 if match else 0.0
    if not 0 < share <= 1:
        raise click.BadParameter(f"{text!r} is not a share such as 1% or 0.5%")
    return share


@click.command()
@modules_argument
@many_options("Verify", "verified", parallel=1)
@click.option("--content", is_flag=True, help="Also read every file and compare its digest.")
@click.option(
    "--path", "only", default="", metavar="PATH", help="Only this path and everything below it."
)
@click.option(
    "--sample",
    callback=_share,
    metavar="N%",
    help="Only a random sample of this share of the files, for a quick check.",
)
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="With --sample: pick the same files again as the run that printed this number.",
)
@click.option(
    "--time",
    "seconds",
    callback=parse_duration,
    metavar="TIME",
    help="Stop each module's run after this long (90s, 30m, 2h). Starts with what was verified "
    "longest ago, and continues where the last such run stopped.",
)
@click.option("--repair", is_flag=True, help="Repair what differs.")
@click.option(
    "--delete-extraneous",
    is_flag=True,
    help="With --repair: delete what the applied commit does not name.",
)
@engine_option
@wait_option
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@log_option
@json_option
@click.pass_obj
def command(
    root: Path,
    names: tuple[str, ...],
    every: bool,
    parallel: int,
    content: bool,
    only: str,
    sample: float | None,
    seed: int | None,
    seconds: int | None,
    repair: bool,
    delete_extraneous: bool,
    engine: str,
    wait: float,
    quiet: bool,
    log: LogFile | None,
    as_json: bool,
) -> int:
    """Compare the trees of the modules NAME with their applied commits.

    Lists what differs, and ends with exit code 47 if anything differs and was not repaired; with
    several modules, the worst code counts. A sync can run meanwhile. Reading gives way to other
    users of the disk.
    """
    if only and sample is not None:
        raise click.UsageError("--path and --sample exclude each other")
    if seed is not None and sample is None:
        raise click.UsageError("--seed goes with --sample")
    if engine and sample is not None:
        raise click.UsageError("--engine and --sample exclude each other")
    if engine.startswith("mpi:") and (every or len(names) != 1):
        raise click.UsageError("--engine mpi:// verifies one module")
    config = load(root)
    console = Console(quiet=quiet, as_json=as_json, log_file=log)

    def one(name: str) -> ExitCode:
        """Verify one module."""
        module = config.module(name)
        with log_failures(log, name):
            check_config(config, name, root)
            request = VerifyRequest(
                content=content,
                path=parse_path_argument(only, module.dest),
                sample=sample,
                seed=secrets.randbelow(_SEEDS) if seed is None else seed,
                # Set here, so that the first module does not use up the time of the others.
                deadline=Deadline.after(seconds),
                repair=repair,
                engine=engine,
            )
            mirror = Mirror.of(root, name, module)
            run = Run(mirror, ConsoleReport(mirror, console))
            options = SyncOptions(delete_extraneous=delete_extraneous)
            return run.verify(options, request, wait=wait)

    chosen = choose_modules(config, names, root, every=every, verb="verify")
    return do_each(one, chosen, every=every, parallel=parallel, console=console)
