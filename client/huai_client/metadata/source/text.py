"""Reads a list of text that a program prints, or a web server has (docs/DOWNSTREAM.md)."""

import os
from collections.abc import Callable

from huai_client.config.mirror import ListSettings
from huai_client.metadata.http import (
    ListedUrl,
    MetadataUrl,
    NotServedError,
    Request,
    UnchangedError,
    UpstreamError,
    is_http,
    send,
)
from huai_client.metadata.source.daemon import ListOutcome
from huai_client.run.options import Deadline
from huai_native._native import EntryList, TextList
from huai_program.programs import environment, read_program
from huai_program.urls import masked
from huai_schema.errors import FormatError

_READ_BYTES = 1 << 18


def describe_source(settings: ListSettings) -> str:
    """Return a sentence on how a source of text lists an upstream."""
    source = masked(settings.source[0])
    if is_http(source):
        return f"{source} lists all of it, and is requested if it changed"
    return f"{source} lists all of it, at most once in {settings.every / 60:.0f} minutes"


class TextSource:
    """The list of an upstream that a program of the administrator prints, or a web server has."""

    def __init__(self, url: ListedUrl, *, timeout: float, deadline: Deadline) -> None:
        """`timeout` limits each pause without data, in seconds."""
        self._source = url.settings.source
        self._tls = url.tls
        self._timeout = timeout
        self._deadline = deadline
        self.has_other_digests = False
        """True if the list had digests of other kinds than BLAKE3."""
        self.validator = ""
        """The ETag or the time of the list; empty for a program, and if the server sent neither."""

    def __str__(self) -> str:
        """Return the program or the URL, for messages."""
        return masked(self._source[0])

    def list_tree(self, entries: EntryList) -> ListOutcome:
        """Add all entries of the list to `entries`.

        Raises `UpstreamError` if the list cannot be fetched, `FormatError` if it is malformed.
        """
        reader = TextList(entries)

        def feed(output: bytes) -> None:
            self._deadline.check("the tree is unchanged")
            reader.feed(output)

        try:
            if is_http(self._source[0]):
                self._download(feed)
            else:
                self._run(feed)
            reader.finish()
        except FormatError as error:
            raise error.within(f"the list of {self}") from error
        self.has_other_digests = reader.has_other_digests
        return ListOutcome(partial=False, messages=())

    def has_changed(self, validator: str) -> bool:
        """Return True unless the server says that the list still has `validator`: one request.

        Raises `UpstreamError` if it does not respond.
        """
        try:
            self._download(None, validator)
        except UnchangedError:
            return False
        return True

    def _download(self, feed: Callable[[bytes], None] | None, validator: str = "") -> None:
        """Request the list, call `feed`, if given, with all of it, and note its validator.

        Raises `UnchangedError` if it still has `validator`, `UpstreamError` for a failure.
        """
        place, _, query = self._source[0].partition("?")
        folder, _, name = place.rpartition("/")
        request = Request(f"{name}?{query}" if query else name, validator=validator)
        metadata = MetadataUrl(folder, self._tls)
        try:
            with send(metadata, request, timeout=self._timeout, deadline=self._deadline) as it:
                self.validator = it.validator
                while feed is not None and (data := it.read(_READ_BYTES)):
                    feed(data)
                    it.renew()
        except NotServedError as error:
            raise UpstreamError(f"{self}: the file is missing", hint="check list_url") from error

    def _run(self, feed: Callable[[bytes], None]) -> None:
        """Run the program, and call `feed` with its output; raises `UpstreamError` if it fails."""
        failure = read_program(
            self._source,
            environment(os.environ, {}),
            seconds=self._deadline.bound(self._timeout),
            on_output=feed,
        )
        if failure:
            raise UpstreamError(
                f"{self}: {failure}", hint="run list_command of client.toml by hand"
            )
