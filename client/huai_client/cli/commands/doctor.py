"""`huai-client doctor`: check what would make a sync fail, and say how to fix it."""

from collections.abc import Iterable
from pathlib import Path

import click

from huai_client.cli.options import modules_argument
from huai_client.config.load import config_path, load
from huai_client.config.mirror import Mirror
from huai_client.inspect.doctor.checks import CONFIG, MACHINE, MODULE
from huai_client.inspect.doctor.finding import CheckFinding, FindingTotals, failed_by, run_checks
from huai_program.cli.options import json_option
from huai_program.ending import print_json
from huai_schema.errors import HuaiError


@click.command()
@modules_argument
@json_option
@click.pass_obj
def command(root: Path, names: tuple[str, ...], as_json: bool) -> int:
    """Check for anything that would keep the modules NAME, or all, from syncing.

    Checks programs, state, destination, file systems, the clock and the upstreams (one small file
    of each is compared with the newest commit), and says how to fix what is wrong. Changes nothing.
    The exit code is that of the first check that fails, which is what a sync would end with.
    """
    report = _Report(as_json=as_json)
    report.add("", run_checks(MACHINE, root))
    try:
        config = load(root)
    except HuaiError as error:
        report.add("", [CheckFinding("config", failed_by(error))])
        return report.conclude()
    report.add("", run_checks(CONFIG, (config_path(root), config)))
    for name in names or sorted(config.modules):
        mirror = Mirror.of(root, name, config.module(name))
        report.add(name, run_checks(MODULE, mirror))
    return report.conclude()


class _Report:
    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._totals = FindingTotals()

    def add(self, module: str, findings: Iterable[CheckFinding]) -> None:
        """Print and count findings; `module` is empty for those about all modules."""
        if module and not self._as_json:
            click.echo(f"{module}:")
        alike: dict[tuple[str, str], list[str]] = {}
        """The checks by result and message: each message is printed once."""
        for check, finding in findings:
            self._totals.add(finding)
            if self._as_json:
                print_json(
                    "check",
                    module=module or None,
                    check=check,
                    result=str(finding.result),
                    message=finding.message,
                    fix=finding.fix,
                )
                continue
            checks = alike.setdefault((finding.result, finding.message), [])
            checks.append(check)
            if len(checks) > 1:
                continue
            click.echo(f"  {finding.result:8} {check:12} {finding.message}")
            if finding.fix:
                click.echo(f"  {'':8} {'':12} → {finding.fix}")
        for (result, _), (first, *more) in alike.items():
            if more:
                click.echo(f"  {result:8} {', '.join(more)}: same as {first}")

    def conclude(self) -> int:
        """Print the totals, and return the exit code."""
        code = self._totals.exit_code
        if self._as_json:
            print_json("doctor", code=int(code), **self._totals.values())
        else:
            click.echo(str(self._totals))
        return code
