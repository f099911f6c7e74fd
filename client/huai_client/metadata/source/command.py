"""Runs a program that prints the list of a tree as JSON objects (docs/DOWNSTREAM.md)."""

import os
from collections.abc import Sequence

from huai_client.config.mirror import ListSettings
from huai_client.metadata.http import UpstreamError
from huai_client.metadata.source.daemon import ListOutcome
from huai_client.run.options import Deadline
from huai_native._native import EntryList, TextList
from huai_program.programs import environment, read_program
from huai_schema.errors import FormatError


def describe_command(settings: ListSettings) -> str:
    """Return a sentence on how a program lists an upstream."""
    minutes = settings.every / 60
    return f"{settings.command[0]} lists all of it, at most once in {minutes:.0f} minutes"


class CommandList:
    """A program of the administrator."""

    def __init__(self, command: Sequence[str], *, timeout: float, deadline: Deadline) -> None:
        """`timeout` limits each pause without output, in seconds."""
        self._command = command
        self._timeout = timeout
        self._deadline = deadline
        self.has_other_digests = False
        """True if the list had digests of other kinds than BLAKE3."""

    def list_tree(self, entries: EntryList) -> ListOutcome:
        """Add all entries to `entries`; `UpstreamError` if the program fails."""
        reader = TextList(entries)

        def feed(output: bytes) -> None:
            self._deadline.check("the tree is unchanged")
            reader.feed(output)

        try:
            failure = read_program(
                self._command,
                environment(os.environ, {}),
                seconds=self._deadline.bound(self._timeout),
                on_output=feed,
            )
            if failure:
                raise UpstreamError(
                    f"{self._command[0]}: {failure}", hint="run list_command of client.toml by hand"
                )
            reader.finish()
        except FormatError as error:
            raise error.within(f"the list of {self._command[0]}") from error
        self.has_other_digests = reader.has_other_digests
        return ListOutcome(partial=False, messages=())
