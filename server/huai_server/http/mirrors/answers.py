"""The reports about mirrors: as JSON, and in the formats of other mirror software.

Pure.  mirmon: the lines of its state file (Mirmon(3), Mirmon::Mirror).  MirrorZ: `mirrorz.json`,
version 1.4 of its data format.  tunasync: the jobs of one mirror, as its manager lists them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import Field

from huai_server.export.tunasync import job, shown_size
from huai_server.http.api import Model
from huai_server.mirrors.record import Probe
from huai_server.mirrors.states import MirrorState

_VERSION = 1.4
_SECONDS = "seconds since the epoch"


class LagModel(Model):
    """Seconds for which a newer commit has existed, now and as percentiles over 30 days."""

    now: int
    p50: int
    p90: int
    p99: int


class ProbeModel(Model):
    """The result of the last probe of a mirror."""

    time: int = Field(description=f"when it was, {_SECONDS}")
    verdict: str = Field(
        description="good; lies: other content than it attests; stale: files are missing; "
        "unreachable"
    )
    serial: int = Field(description="the serial attested at that time")
    files: int = Field(description="how many were compared")
    path: str | None = Field(description="the first wrong or missing file")
    reason: str | None


class SponsorModel(Model):
    """The organization that pays for a mirror."""

    name: str
    url: str


class MirrorModel(Model):
    """The part of one module that a mirror holds."""

    mirror: str = Field(description="its name in allowed_downstreams")
    serial: int
    commit: str
    time: int = Field(description=f"when it attested that, {_SECONDS}")
    since: int = Field(description=f"since when it has held that, {_SECONDS}")
    lag: LagModel
    partial: bool = Field(description="true if it leaves out a part of the module")
    offered: bool = Field(description="true if mirrorlist and metalinks name it")
    probe: ProbeModel | None = Field(description="null: not probed")
    urls: list[str]
    country: str | None = Field(description="its code (ISO 3166-1 alpha-2)")
    sponsor: SponsorModel | None


class ModuleMirrorsModel(Model):
    """The mirrors of one module, the freshest first."""

    module: str
    serial: int = Field(description="of the newest commit; 0 before the first one")
    mirrors: list[MirrorModel]


class AllMirrorsModel(Model):
    """The mirrors of all modules, by name."""

    modules: list[ModuleMirrorsModel]


def module_mirrors(name: str, serial: int, states: Iterable[MirrorState]) -> ModuleMirrorsModel:
    """Return the mirrors of a module in the order of `states`; `serial` is the newest commit's."""
    return ModuleMirrorsModel(module=name, serial=serial, mirrors=[*map(_model, states)])


def _model(one: MirrorState) -> MirrorModel:
    """Return a mirror's state, for JSON."""
    sponsor, (p50, p90, p99) = one.downstream.sponsor, one.percentiles
    return MirrorModel(
        mirror=one.mirror,
        serial=one.attestation.serial,
        commit=one.attestation.commit,
        time=one.attestation.time,
        since=one.since,
        lag=LagModel(now=one.lag, p50=p50, p90=p90, p99=p99),
        partial=one.attestation.partial,
        offered=one.offered,
        probe=_probe_model(one.probe) if one.probe else None,
        urls=list(one.attestation.urls),
        country=one.downstream.country or None,
        sponsor=SponsorModel(name=sponsor.name, url=sponsor.url) if sponsor else None,
    )


def _probe_model(probe: Probe) -> ProbeModel:
    """Return the result of a probe, for JSON."""
    return ProbeModel(
        time=probe.time,
        verdict=probe.verdict,
        serial=probe.serial,
        files=probe.files,
        path=probe.path or None,
        reason=probe.reason or None,
    )


def offered_urls(states: Iterable[MirrorState]) -> dict[str, str]:
    """Return the country by URL of the mirrors that are offered to clients, ordered as `states`.

    The country is empty if it is unknown.
    """
    return {
        url: each.downstream.country
        for each in states
        if each.offered
        for url in each.attestation.urls
    }


def mirmon(states: Iterable[MirrorState]) -> str:
    """Return mirmon's state file: a line for each URL of each mirror, offered or not.

    A line has URL, time as of which the tree is complete, `ok`, and the attestation as the only
    probe: its time, `s`, a history, its time.  Times are seconds since the epoch.  The history is
    the time with `s` if the mirror is offered, else `f`.
    """
    return "".join(
        f"{url} {one.complete_at} ok {one.attestation.time} s {one.attestation.time}-"
        f"{'s' if one.offered else 'f'} "
        f"{one.attestation.time}\n"
        for one in states
        for url in one.attestation.urls
    )


class HeldModule(NamedTuple):
    """A module that a mirror holds, with the bytes of all files of its newest commit here."""

    module: str
    size: int
    state: MirrorState


def mirrorz(mirror: str, modules: Sequence[HeldModule]) -> dict[str, object] | None:
    """Return one mirror as a site of MirrorZ, for JSON; None if it names no web server.

    Modules without a URL of a web server are left out; of several URLs the first counts.
    """
    served = []
    for module in modules:
        urls = [url for url in module.state.attestation.urls if url.startswith("http")]
        if urls:
            served.append((module, urls[0].rstrip("/")))
    if not served:
        return None
    parts = urlsplit(served[0][1])
    return {
        "version": _VERSION,
        "site": {"url": f"{parts.scheme}://{parts.netloc}", "abbr": mirror},
        "info": [],
        "mirrors": [
            {
                "cname": module.module,
                "desc": "",
                "url": url,
                "status": _mirrorz_status(module.state),
                "help": "",
                "upstream": "",
                **_size(module),
            }
            for module, url in served
        ],
    }


def _mirrorz_status(one: MirrorState) -> str:
    """Return `S` and the time of the attestation, or `FO` and the time of the last complete tree.

    Times are seconds since the epoch.  It is `S` if the mirror is offered, or has the newest commit
    and no probe refutes that.
    """
    is_good = one.offered or (one.lag == 0 and (one.probe is None or one.probe.trusted))
    return f"S{one.attestation.time}" if is_good else f"FO{one.complete_at}"


def _size(module: HeldModule) -> Mapping[str, str]:
    """Return the field `size`; no field for a partial mirror."""
    return {} if module.state.attestation.partial else {"size": shown_size(module.size)}


def tunasync(modules: Sequence[HeldModule]) -> list[dict[str, object]]:
    """Return the modules of one mirror as jobs of tunasync, for JSON; size 0 for a partial one."""
    jobs = []
    for module in modules:
        attestation = module.state.attestation
        size = 0 if attestation.partial else module.size
        since = module.state.since
        jobs.append(job(module.module, attestation.time, (since, attestation.time), "", size))
    return jobs


def as_text(value: object) -> str:
    """Return `value` as indented JSON with a final newline."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
