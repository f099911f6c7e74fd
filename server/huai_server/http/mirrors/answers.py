"""What is told of mirrors: as JSON, and as other programs of mirrors have it.

Pure.  mirmon: the lines of its state file (Mirmon(3), Mirmon::Mirror).  MirrorZ: `mirrorz.json`,
version 1.4 of its data format.  tunasync: the jobs of one mirror, as its manager lists them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from huai_server.export.tunasync import job, shown_size
from huai_server.mirrors.record import Probe
from huai_server.mirrors.standing import Standing

_VERSION = 1.4
_SECONDS = "seconds since the epoch"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LagModel(_Model):
    """Seconds for which there has been a newer commit; of 30 days what it kept to."""

    now: int
    p50: int
    p90: int
    p99: int


class ProbeModel(_Model):
    """What the last probe of a mirror found."""

    time: int = Field(description=f"when it was, {_SECONDS}")
    verdict: str = Field(
        description="good; lies: other content than it attests; stale: files are missing; "
        "unreachable"
    )
    serial: int = Field(description="that the mirror attested then")
    files: int = Field(description="how many were compared")
    path: str | None = Field(description="the first that was wrong or missing")
    reason: str | None


class MirrorModel(_Model):
    """What one mirror holds of one module."""

    mirror: str = Field(description="its name in allowed_downstreams")
    serial: int
    commit: str
    time: int = Field(description=f"when it said so, {_SECONDS}")
    since: int = Field(description=f"since when it has held that, {_SECONDS}")
    lag: LagModel
    partial: bool = Field(description="whether it leaves out some of the module")
    offered: bool = Field(description="whether mirrorlist and metalinks name it")
    probe: ProbeModel | None = Field(description="null: it was not probed")
    urls: list[str]


class ModuleMirrorsModel(_Model):
    """The mirrors of one module, the freshest first."""

    module: str
    serial: int = Field(description="of the newest commit; 0: there is none")
    mirrors: list[MirrorModel]


class AllMirrorsModel(_Model):
    """The mirrors of all modules, by name."""

    modules: list[ModuleMirrorsModel]


def module_mirrors(name: str, serial: int, standings: Iterable[Standing]) -> ModuleMirrorsModel:
    """As JSON has it."""
    return ModuleMirrorsModel(module=name, serial=serial, mirrors=[*map(_model, standings)])


def _model(one: Standing) -> MirrorModel:
    p50, p90, p99 = one.percentiles
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
    )


def _probe_model(probe: Probe) -> ProbeModel:
    return ProbeModel(
        time=probe.time,
        verdict=probe.verdict,
        serial=probe.serial,
        files=probe.files,
        path=probe.path or None,
        reason=probe.reason or None,
    )


def offered_urls(standings: Iterable[Standing]) -> list[str]:
    """Where the module can be had, the freshest first."""
    return [url for each in standings if each.offered for url in each.attestation.urls]


def mirmon(standings: Iterable[Standing]) -> str:
    """URL, timestamp of the tree, status, last good probe, probes, states, last probe."""
    return "".join(
        f"{url} {one.complete_at} ok {one.attestation.time} s {one.attestation.time}-{_state(one)} "
        f"{one.attestation.time}\n"
        for one in standings
        for url in one.attestation.urls
    )


def _state(one: Standing) -> str:
    """Fresh, or old."""
    return "s" if one.offered else "f"


class Held(NamedTuple):
    """A module that a mirror holds, with the size of the upstream's newest commit."""

    module: str
    size: int
    standing: Standing


def mirrorz(mirror: str, held: Sequence[Held]) -> dict[str, object] | None:
    """One mirror as a site of MirrorZ; None: it names no web server."""
    found = []
    for each in held:
        urls = [url for url in each.standing.attestation.urls if url.startswith("http")]
        if urls:
            found.append((each, urls[0].rstrip("/")))
    if not found:
        return None
    parts = urlsplit(found[0][1])
    return {
        "version": _VERSION,
        "site": {"url": f"{parts.scheme}://{parts.netloc}", "abbr": mirror},
        "info": [],
        "mirrors": [
            {
                "cname": each.module,
                "desc": "",
                "url": url,
                "status": _mirrorz_status(each.standing),
                "help": "",
                "upstream": "",
                **_size(each),
            }
            for each, url in found
        ],
    }


def _mirrorz_status(one: Standing) -> str:
    """Successful, or failed with the time of the last success."""
    is_good = one.offered or (one.lag == 0 and (one.probe is None or one.probe.trusted))
    return f"S{one.attestation.time}" if is_good else f"FO{one.complete_at}"


def _size(held: Held) -> Mapping[str, str]:
    return {} if held.standing.attestation.partial else {"size": shown_size(held.size)}


def tunasync(held: Sequence[Held]) -> list[dict[str, object]]:
    """One mirror's modules as jobs of tunasync."""
    jobs = []
    for each in held:
        said = each.standing.attestation
        size = 0 if said.partial else each.size
        jobs.append(job(each.module, said.time, (each.standing.since, said.time), "", size))
    return jobs


def as_text(value: object) -> str:
    """JSON with its end of line."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
