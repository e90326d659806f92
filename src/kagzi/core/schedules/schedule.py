"""Schedules: their specification, the results of their nominal times, and overlap with open runs."""

import hashlib
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

import msgspec

from ..error_details import ErrorDetail
from ..limits import SCHEDULE_CATCHUP_DEFAULT, SCHEDULE_CATCHUP_WINDOW_US
from ..records import NO_LABELS, Payload
from ..run.commands import StartRun
from ..times import US_PER_S, Timestamp, to_datetime

Overlap: TypeAlias = Literal["allow", "skip", "buffer_one", "cancel_other"]
OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)

Cause: TypeAlias = Literal["clock", "catchup", "trigger", "backfill"]


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The specification of a schedule: either `cron_expr` or `interval_us`. Nominal times are at or after `start_at`
    and before `end_at`."""

    workflow_type: str
    cron_expr: str = ""
    interval_us: int | None = None
    timezone: str = ""
    input: Payload | None = None
    context: Payload | None = None
    version: str = ""
    labels: Mapping[str, str] = NO_LABELS
    priority: int = 0
    overlap: Overlap = "allow"
    jitter_us: int = 0
    start_at: Timestamp | None = None
    end_at: Timestamp | None = None
    max_catchup: int = SCHEDULE_CATCHUP_DEFAULT
    catchup_window_us: int = SCHEDULE_CATCHUP_WINDOW_US
    timeout_us: int | None = None  # of each run, from its creation
    owner: str = ""  # the program whose code declares it


_spec_encoder = msgspec.json.Encoder(order="deterministic")


def write_spec(spec: ScheduleSpec) -> str:
    """The form in which both stores keep it."""
    return _spec_encoder.encode(spec).decode()


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`next_at`: the next nominal time, None if there is none or the schedule is paused. `due_at`: when it is fired,
    which is later by the jitter. `revision` grows with every change except a fire."""

    namespace: str
    schedule_id: str
    spec: ScheduleSpec
    enabled: bool = True
    paused_reason: str = ""
    next_at: Timestamp | None = None
    due_at: Timestamp | None = None
    last_fired_at: Timestamp | None = None
    created_at: Timestamp = 0
    updated_at: Timestamp = 0
    revision: int = 1
    request_id: str = ""


class Fire(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a nominal time: a run, or the reason why it was skipped. A skip may stand for several times, up to
    `skipped_until`; `count` is their number, 0 if they were not counted."""

    nominal_at: Timestamp
    at: Timestamp
    cause: Cause
    run_id: str | None = None
    reason: str = ""
    skipped_until: Timestamp | None = None
    count: int = 0

    @property
    def skipped(self) -> bool:
        return self.run_id is None


class OpenRun(msgspec.Struct, frozen=True, gc=False):
    """An open run of the schedule. `waits`: it has not begun, because it waits for another one to end. `stops`: it was
    asked to stop."""

    run_id: str
    waits: bool = False
    stops: bool = False


class AllowedStart(msgspec.Struct, frozen=True):
    """A start that the overlap policy permits, after the runs in `cancel` were asked to stop."""

    start: StartRun
    cancel: tuple[str, ...] = ()


def due_time(schedule_id: str, jitter_us: int, nominal: Timestamp, following: Timestamp | None) -> Timestamp:
    """The nominal time plus a jitter that is deterministic for it and ends before the next nominal time."""
    if not jitter_us:
        return nominal
    most = jitter_us if following is None else min(jitter_us, following - nominal)
    digest = hashlib.blake2b(f"{schedule_id}\0{nominal}".encode(), digest_size=8).digest()
    return nominal + most * int.from_bytes(digest) // 2**64


def run_name(schedule_id: str, nominal: Timestamp) -> str:
    """The workflow_id of the run for a nominal time: `<schedule>/<RFC 3339, UTC>`."""
    precision = "seconds" if nominal % US_PER_S == 0 else "microseconds"
    return f"{schedule_id}/{to_datetime(nominal).replace(tzinfo=None).isoformat(timespec=precision)}Z"


def request_of(schedule_id: str, what: str) -> str:
    """The request id of a start, with bounded length: the same for the same nominal time or trigger."""
    named = f"{schedule_id}\0{what}".encode()
    return f"schedule:{hashlib.blake2b(named, digest_size=16).hexdigest()}"


def overlapped(start: StartRun, overlap: Overlap, open_runs: list[OpenRun]) -> AllowedStart | str:
    """Whether the overlap policy permits a start beside the schedule's open runs: the start, possibly changed, or the
    reason why not."""
    if overlap == "allow" or not open_runs:
        return AllowedStart(start)
    running = [run for run in open_runs if not run.waits]
    blocker = (running or open_runs)[-1].run_id
    if overlap == "skip":
        return f"run {blocker} of this schedule is still open, and overlap is skip"
    if overlap == "cancel_other":
        return AllowedStart(start, tuple(run.run_id for run in open_runs if not run.stops))
    waiting = [run for run in open_runs if run.waits]
    if waiting:
        return (
            f"run {waiting[-1].run_id} of this schedule is already waiting for run {blocker} to end, "
            "and overlap is buffer_one"
        )
    return AllowedStart(msgspec.structs.replace(start, blocked_by=blocker))


def refusal_reason(error: ErrorDetail) -> str:
    return f"the start was refused: {error.message}"
