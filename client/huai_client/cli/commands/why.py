"""`huai-client why`: show everything that concerns one path."""

from pathlib import Path

import click

from huai_client.cli.options import module_argument, parse_path_argument
from huai_client.config.load import load
from huai_client.config.mirror import Mirror
from huai_client.inspect.commits import LocalCommits
from huai_client.inspect.why import reasons
from huai_client.inspect.why_report import reason_lines, reason_values
from huai_program.cli.options import json_option
from huai_program.ending import print_json
from huai_program.output import end_with_reader
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import show


class UnknownPathError(HuaiError):
    """An error for a path that is neither here nor upstream."""

    exit_code = ExitCode.USAGE

    def __init__(self, name: str, path: str) -> None:
        """Name `path`, which is escaped for people."""
        super().__init__(
            f"{name}: {path}: neither here nor in any commit that is here",
            hint="check the spelling; huai-client plan fetches the newest commit",
        )


@click.command()
@module_argument
@click.argument("path")
@json_option
@click.pass_obj
def command(root: Path, name: str, path: str, as_json: bool) -> None:
    """Show what concerns PATH of NAME: commit, rules, stage, disk, next sync.

    PATH is relative to the module, or below DEST. Asks no upstream: the next sync is predicted from
    the newest commit that is here, which `plan` fetches. Ends with 1 if PATH is neither in the tree
    nor in any commit that is here.
    """
    end_with_reader()
    mirror = Mirror.of(root, name, load(root).module(name))
    rel_path = parse_path_argument(path, mirror.config.dest)
    facts = reasons(rel_path, mirror, LocalCommits(name, mirror.paths))
    if as_json:
        print_json("why", module=name, **reason_values(facts))
    else:
        click.echo(f"{name}: {show(rel_path)}")
        for about, line in reason_lines(facts):
            click.echo(f"  {about:10} {line}")
    if facts.unknown:
        raise UnknownPathError(name, show(rel_path))
