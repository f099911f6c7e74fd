"""Checks of the upstreams: metadata, content and clock.

If one of several URLs responds, failures of the others are warnings.
"""

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from huai_client.config.mirror import Mirror
from huai_client.config.proxies import rsync_proxy
from huai_client.diff.active_filter import rules_of
from huai_client.inspect.doctor.finding import Finding, Result, fail, failed_by, ok, skipped, warn
from huai_client.inspect.doctor.sample import Sample, choose_sample, compare_sample, newest_local
from huai_client.metadata.http import (
    ListedUrl,
    MetadataUrl,
    UpstreamError,
    is_http,
    metadata_urls,
)
from huai_client.metadata.newest import find_newest
from huai_client.metadata.repository import Repository
from huai_client.metadata.source.fetch import describe_listing
from huai_client.metadata.upstream import Upstream
from huai_client.run.options import Deadline, SyncOptions, TimeUpError
from huai_client.state import state as states
from huai_client.state.hosts import Hosts
from huai_client.transfer.attempt import refusal_of
from huai_client.transfer.content import offered_urls
from huai_client.transfer.errors import NoRangesError, UpstreamFullError, UpstreamRefusedError
from huai_client.transfer.limits import StallDetector
from huai_client.transfer.options import TransferOptions, without_secrets
from huai_client.transfer.rsync.arguments import has_shell
from huai_client.transfer.rsync.exit_status import classify_exit
from huai_client.transfer.rsync.run import Bounds, RsyncProcess
from huai_client.transfer.sources import fastest
from huai_client.transfer.urls import ContentUrl, Transport, mirror_urls, own_urls
from huai_client.tree.handles import closing
from huai_program.humanize import format_span, human
from huai_schema.errors import ExitCode, HuaiError

_LIST_OPTIONS = ("--list-only", "--dirs", "--exclude=*", "--no-motd")


def probe(url: ContentUrl, options: TransferOptions) -> HuaiError | None:
    """Return the error of `url`, or None if it lists its folder or responds by HTTP.

    Takes two timeouts at most.
    """
    if url.transport is Transport.HTTP:
        from huai_client.transfer.http.probe import probe_http  # loads libcurl

        return probe_http(url, options)
    if refusal := refusal_of(url, options):
        return refusal
    extra = options.extra if url.own else without_secrets(options.extra)
    command = [options.program, *extra, *_LIST_OPTIONS, f"--timeout={options.timeout}"]
    if url.transport is Transport.DAEMON and not has_shell(extra):
        command.append(f"--contimeout={options.contimeout}")
    arguments = [os.fsencode(argument) for argument in (*command, "--", url.source)]
    with closing(os.open("/", os.O_RDONLY | os.O_DIRECTORY)) as folder:
        stall, bounds = StallDetector(options.timeout), Bounds(own=url.own)
        run = RsyncProcess(
            arguments, names=b"", folder=folder, locks=(), stall=stall, bounds=bounds
        )
        code = run.wait(lambda _: None)
    proxy = rsync_proxy() if url.transport is Transport.DAEMON else None
    failure = classify_exit(code, run.output, url, proxy)
    if failure is None and code:
        reason = f"{url}: {run.output.summary()} (rsync exit {code})"
        return UpstreamRefusedError(
            reason,
            hint="check that the folder exists there, and that its daemon lets this client read it",
        )
    return failure


_TIMEOUT = 15
_PATIENCE = 5
"""Seconds to wait for a second connection: a daemon may still count the first one."""
_INSTANT = 1e-6
_CLOCK_ODD = 30
_CLOCK_WRONG = 900


def metadata(mirror: Mirror) -> Iterator[Finding]:
    """Request the newest commit from each metadata URL; failures are warnings if one responds."""
    yield from _one_is_enough([_newest(mirror, url) for url in metadata_urls(mirror)])


def clock(mirror: Mirror) -> Iterator[Finding]:
    """Compare the clocks of this machine and the upstream; skipped if none sends the time.

    More than 30 s apart is a warning, more than 15 minutes a failure.
    """
    for url in metadata_urls(mirror):
        try:
            theirs = find_newest(url, timeout=_TIMEOUT).clock
        except HuaiError:
            continue
        if theirs is not None:
            yield _compared(url, time.time() - theirs)
            return
    yield skipped("no upstream sent the time")


def content(mirror: Mirror) -> Iterator[Finding]:
    """Check that each content URL accepts connections, and has a file of the newest commit.

    Failures are warnings if one URL is good.  May fetch metadata into a temporary folder.
    """
    urls = own_urls(mirror.config.ranked_urls)
    sample, reason = None, ""
    try:
        sample = choose_sample(mirror, metadata_urls(mirror), _TIMEOUT)
    except (UpstreamError, TimeUpError) as error:
        reason = error.message
    if not urls:
        commit = sample or newest_local(mirror)
        if commit is None:
            yield skipped(
                f"the content URLs are those of the upstream, which cannot be reached: {reason}"
            )
            return
        upstream = Upstream.of(mirror, first_only=True, deadline=Deadline.after(_TIMEOUT))
        urls = offered_urls(commit.content_urls, upstream, _TIMEOUT)
    yield from _one_is_enough([_reached(mirror, url, sample) for url in urls])
    if sample is not None and mirror.config.mirrors == "auto":
        for url in fastest(mirror_urls(sample.descriptor.mirrors, urls), Hosts(mirror.root)):
            yield _as_warning(_reached(mirror, url, sample))
    if sample is None:
        fix = f"huai-client plan {mirror.name} fetches the metadata"
        yield skipped(f"no file is compared: {reason} ({fix})")


def _newest(mirror: Mirror, url: MetadataUrl) -> Finding:
    """Request the newest commit of a metadata URL; a failure becomes the finding."""
    try:
        if isinstance(url, ListedUrl):
            listing = describe_listing(url, _TIMEOUT)
            request = listing.request and f'to its administrator: "{listing.request}"'
            return ok(listing.text, request)
        commit = find_newest(url, timeout=_TIMEOUT).commit
    except HuaiError as error:
        return failed_by(error)
    applied = states.load(mirror.paths.state).applied
    status = "which is applied" if commit == applied else "not applied here yet"
    return ok(f"{url}: newest commit {commit[:12]}, {status}")


def _compared(url: MetadataUrl, ahead: float) -> Finding:
    """Judge the seconds by which this machine's clock is `ahead` of the other one."""
    text = f"{format_span(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} {url}"
    fix = "set the clock by NTP: timedatectl set-ntp true; or inform the upstream's administrator"
    if abs(ahead) > _CLOCK_WRONG:
        return fail(text, fix, ExitCode.CONFIG)
    return warn(text, fix) if abs(ahead) > _CLOCK_ODD else ok(text)


def _reached(mirror: Mirror, url: ContentUrl, sample: Sample | None) -> Finding:
    """Probe `url`; with `sample`, compare that there, and measure a web server's speed.

    An upstream that is full is a warning.
    """
    seconds = min(_TIMEOUT, mirror.config.timeout)
    options = replace(
        TransferOptions.of(mirror),
        streams=1,
        bwlimit=0,
        timeout=seconds,
        contimeout=seconds,
        retries=0,
        patience=_PATIENCE,
    )
    failure = probe(url, options)
    try:
        if failure is not None:
            raise failure
        if sample is None:
            return ok(f"{url}: accepts connections")
        return _with_speed(compare_sample(url, sample, options), url, sample, options)
    except UpstreamFullError as full:
        return warn(full.message, "nothing: a sync waits for its turn")
    except HuaiError as error:
        return failed_by(error)


def _with_speed(
    finding: Finding, url: ContentUrl, sample: Sample, options: TransferOptions
) -> Finding:
    """Add speed and ranges of a web server to a good `finding`; return that, or a problem."""
    if finding.result is not Result.OK or url.transport is not Transport.HTTP or not sample.large:
        return finding
    from huai_client.transfer.http.probe import measure  # loads libcurl

    measured = measure(url, sample.large, options)
    if isinstance(measured.failure, NoRangesError):
        least = sample.descriptor.blocks
        text = f"{finding.message}; whole files only, no ranges"
        if least and sample.large.size >= least:
            return warn(text, "a web server with ranges saves the unchanged parts of large files")
        return ok(text)
    if measured.failure is not None:
        return failed_by(measured.failure)
    rate = human(measured.size / max(measured.seconds, _INSTANT))
    first = f"the first byte after {measured.first_byte * 1000:.0f} ms"
    return ok(f"{finding.message}; ranges, about {rate}/s, {first}")


def _as_warning(finding: Finding) -> Finding:
    """Turn a failure into a warning, because a sync works without this URL."""
    failed = finding.result is Result.FAIL
    return warn(finding.message, finding.fix) if failed else finding


def _one_is_enough(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings about several URLs; unless all fail, failures become warnings."""
    all_findings = list(findings)
    reachable = any(finding.result is not Result.FAIL for finding in all_findings)
    for finding in all_findings:
        yield _as_warning(finding) if reachable else finding


_FIX = (
    "keep both commits and ask the upstream's administrators: a server shows different trees to "
    "different downstreams, or its repository was restored from a backup"
)


def agreement(mirror: Mirror) -> Iterator[Finding]:
    """Check that no serial has two commits: here, and at the HTTP URLs that respond."""
    newest = list(_commits(mirror))
    if len(newest) < 2:
        yield skipped("nothing to compare: one address of metadata, and nothing applied")
        return
    by_serial: dict[int, dict[str, str]] = {}
    for serial, commit, where in newest:
        by_serial.setdefault(serial, {}).setdefault(commit, where)
    for serial, commits in sorted(by_serial.items()):
        if len(commits) > 1:
            places = " and ".join(f"{commit[:12]} at {where}" for commit, where in commits.items())
            yield fail(f"serial {serial} has two commits: {places}", _FIX, ExitCode.ROLLED_BACK)
    if all(len(commits) == 1 for commits in by_serial.values()):
        serials = ", ".join(f"serial {serial}" for serial in sorted(by_serial))
        yield ok(f"{len(newest)} places agree: {serials}")


def _commits(mirror: Mirror) -> Iterator[tuple[int, str, str]]:
    """Yield serial, id and origin of the applied commit, and of the newest one at each HTTP URL.

    Fetches into a temporary repository; a URL that fails is left out.
    """
    applied = states.load(mirror.paths.state).applied
    deadline = Deadline.after(_TIMEOUT)
    with tempfile.TemporaryDirectory(prefix="huai-doctor-") as folder:
        repository = Repository(Path(folder, "asked.git"), timeout=_TIMEOUT)
        local = newest_local(mirror)
        if local is not None:
            repository.borrow(mirror.paths.repository, local.id)
        repository.sparse.limit_to(rules_of(mirror, SyncOptions()))
        if applied is not None and repository.has(applied):
            yield repository.commit(applied).info.serial, applied, "this machine"
        for url in metadata_urls(mirror):
            if not is_http(url.url):
                continue  # other transports have no time limit
            try:
                commit = repository.fetch(url, deadline, find_newest(url, timeout=_TIMEOUT))
            except HuaiError:
                continue  # the check of the metadata reports it
            yield commit.info.serial, commit.id, str(url)
