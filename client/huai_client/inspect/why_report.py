"""The facts about a path, as text for people and as values for JSON.

Pure, except that times are shown in the local time zone.
"""

from collections.abc import Iterator

from huai_client.inspect.format import entry_words, step_words
from huai_client.inspect.why import Filtered, PathStatus, Preview, Reasons
from huai_program.humanize import counted, moment
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import entry_values
from huai_schema.paths import path_as_text, show


def reason_lines(reasons: Reasons) -> Iterator[tuple[str, str]]:
    """Yield the lines, each with a heading and a text."""
    info = reasons.applied.info
    entry = reasons.entry
    yield "applied", f"serial {info.serial}, commit {reasons.applied.id[:12]}"
    nothing = "not known: what the filter excludes was not fetched"
    yield "there", entry_words(entry) if entry else nothing if reasons.unfetched else "nothing"
    if reasons.brought is not None:
        event = reasons.brought
        change = "existed in the oldest known commit" if event.oldest else step_words(event.step)
        yield "commit", f"serial {event.commit.info.serial}, {moment(event.commit.time)}: {change}"
    if reasons.filtered is not None:
        yield "filter", _filter_words(reasons.filtered)
    if reasons.protected:
        yield "protected", "never touched here, even if the upstream changes it"
    if reasons.placement is not None:
        yield "stage", f"{STAGES[reasons.placement.stage]}, {_rule_words(reasons)}"
    if reasons.volatile:
        yield "volatile", "changes without a commit, and is published as it arrives"
    yield "here", _local_words(reasons)
    if reasons.delayed is not None:
        since, until = moment(reasons.delayed.since), moment(reasons.until)
        yield "delayed", f"to be deleted since {since}, until {until}"
    if reasons.verified is not None:
        times = reasons.verified
        by, content = _verified_words(times.metadata), _verified_words(times.content)
        yield "verified", f"attributes {by}, content {content}, with all of {show(times.part)}"
    for line in _next_words(reasons.next_sync, reasons.local.status):
        yield "next sync", line


def reason_values(reasons: Reasons) -> dict[str, object]:
    """Return the values for JSON."""
    event, placement, delayed, local = (
        reasons.brought,
        reasons.placement,
        reasons.delayed,
        reasons.local,
    )
    return {
        "path": path_as_text(reasons.path),
        "applied": {"commit": reasons.applied.id, "serial": reasons.applied.info.serial},
        "there": entry_values(reasons.entry),
        "brought": event
        and {
            "commit": event.commit.id,
            "serial": event.commit.info.serial,
            "time": event.commit.time,
            "change": None if event.oldest else str(event.step.sign),
            "known_since": not event.oldest,
        },
        "filter": reasons.filtered and _filter_values(reasons.filtered),
        "protected": reasons.protected,
        "stage": placement
        and {
            "stage": STAGES[placement.stage],
            "rule": placement.rule or None,
            "rule_of": reasons.rule_of,
            "repository": placement.repository
            and {
                "path": path_as_text(placement.repository.top),
                "profile": placement.repository.profile,
                "found_by": placement.repository.found_by,
            },
        },
        "volatile": reasons.volatile,
        "here": {
            "status": str(local.status),
            "attributes": list(local.attributes),
            "entry": entry_values(local.entry),
            "reason": local.reason,
        },
        "delayed": delayed and {"since": delayed.since, "until": reasons.until},
        "verified": reasons.verified
        and {
            "part": show(reasons.verified.part),
            "metadata": reasons.verified.metadata if reasons.verified.metadata > 0 else None,
            "content": reasons.verified.content if reasons.verified.content > 0 else None,
        },
        "next_sync": _next_values(reasons.next_sync),
    }


def _verified_words(time: int) -> str:
    """Return the text for a time of `state.verification`."""
    if time > 0:
        return moment(time)
    return "not since a commit changed it" if time else "never"


def _filter_words(filtered: Filtered) -> str:
    """Return the decision of the filter, the rule that decided, and if it protects."""
    decision = "includes it" if filtered.let_through else "excludes it"
    why = "no rule matches"
    if filtered.decision is not None:
        rule = filtered.decision.rule
        why = f"{show(rule.text)} ({rule.place}) matches {show(filtered.decision.path)}"
    return f"{decision}: {why}" + ("; protected from deletion" if filtered.protected else "")


def _filter_values(filtered: Filtered) -> dict[str, object]:
    decision = filtered.decision
    return {
        "let_through": filtered.let_through,
        "protected": filtered.protected,
        "rule": None if decision is None else show(decision.rule.text),
        "place": None if decision is None else decision.rule.place,
        "matched": None if decision is None else path_as_text(decision.path),
    }


def _rule_words(reasons: Reasons) -> str:
    """Return the rule that decided the stage, and the repository around the path."""
    placement = reasons.placement
    if placement is None or not placement.rule:
        rule = "no rule matches"
    else:
        rule = f"by the rule {placement.rule!r} of {reasons.rule_of}"
    if placement is None or placement.repository is None:
        return rule
    around = placement.repository
    return f"{rule}, in the {around.profile} repository {show(around.top)} ({around.found_by})"


def _local_words(reasons: Reasons) -> str:
    """Return how the path in the tree differs from the applied commit."""
    local = reasons.local
    text = {
        PathStatus.AS_APPLIED: "as applied",
        PathStatus.DIFFERS: f"differs in {', '.join(local.attributes)}",
        PathStatus.MISSING: "missing",
        PathStatus.EXTRANEOUS: "extraneous, not in the applied commit",
        PathStatus.NOTHING: "nothing" if reasons.unknown else "nothing, as it should be",
        PathStatus.UNREADABLE: f"cannot be read: {local.reason}",
    }[local.status]
    if local.status in (PathStatus.DIFFERS, PathStatus.EXTRANEOUS):
        text += f": {entry_words(local.entry) if local.entry else 'a device, socket or fifo'}"
    return text


def _next_words(preview: Preview, status: PathStatus) -> Iterator[str]:
    """Yield a line for each effect of the next sync, or one that says "nothing"."""
    serial = preview.commit.info.serial
    if preview.compares_tree:
        yield f"compares the whole tree with serial {serial}, the newest one here"
    elif preview.refusal:
        yield f"to serial {serial} would end before it changes anything: {preview.refusal}"
    for operation, detail in preview.operations:
        yield f"to serial {serial}: {operation}" + (f" ({detail})" if detail else "")
    if preview.below:
        yield f"to serial {serial}: {counted(preview.below, 'operation')} below it"
    if preview[1:] == Preview(preview.commit)[1:]:
        yield f"to serial {serial}, the newest one here: nothing"
        if status in (PathStatus.DIFFERS, PathStatus.MISSING):
            yield "does not see changes by other programs: verify --repair repairs them"


def _next_values(preview: Preview) -> dict[str, object]:
    return {
        "commit": preview.commit.id,
        "serial": preview.commit.info.serial,
        "operations": [
            {"operation": operation, "detail": detail} for operation, detail in preview.operations
        ],
        "operations_below": preview.below,
        "refusal": preview.refusal or None,
        "compares_whole_tree": preview.compares_tree,
    }
