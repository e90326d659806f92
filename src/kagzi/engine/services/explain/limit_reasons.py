"""Explains which limit holds back a run, or a whole queue, although workers have free slots."""

import msgspec

from ....core.text.commands import quoted
from ....core.text.plurals import counted
from ....core.times import Timestamp, to_datetime
from ....core.workflow_types.queues import Pressure


class LimitReason(msgspec.Struct, frozen=True):
    """`reason`: a stable word for programs."""

    reason: str
    sentence: str  # without initial capital and full stop
    remedy: str


def limited_by(
    pressure: Pressure, workflow_type: str, key: str, now: Timestamp, *, begun: bool = False
) -> LimitReason | None:
    """Which limit keeps a run of this type and key from beginning. `begun`: rates do not apply. None: no limit."""
    limits = pressure.limits
    change = f"kagzi workflows limit {quoted(workflow_type)}"
    if limits.paused:
        return LimitReason(
            "type_paused",
            f"type {workflow_type} is paused",
            f"Resume it: kagzi workflows resume {quoted(workflow_type)}",
        )
    if key and limits.max_running_per_key is not None and pressure.running_of_key >= limits.max_running_per_key:
        most = limits.max_running_per_key
        sentence = (
            f"the limit of one running run with key {key} is reached: {pressure.holder_of_key}"
            if most == 1
            else f"the limit of {most} running runs with key {key} is reached, for example {pressure.holder_of_key}"
        )
        return LimitReason("key_limit", sentence, f"It begins when that has ended or sleeps. Or: {change} --per-key N")
    if limits.max_running is not None and pressure.running >= limits.max_running:
        sentence = f"the limit of {counted(limits.max_running, 'running run')} of type {workflow_type} is reached"
        return LimitReason(
            "type_limit", sentence, f"It begins when one of them has ended. Or: {change} --max-running N"
        )
    if not begun and pressure.begins_at is not None and pressure.begins_at > now:
        at = to_datetime(pressure.begins_at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        sentence = f"the rate limit of type {workflow_type} lets the next run begin at {at}"
        return LimitReason("rate_limit", sentence, f"It begins then, or after those before it. Or: {change} --rate N")
    return None
