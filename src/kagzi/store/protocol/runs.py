"""Runs and their steps, as people ask about them and change them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from ...core.effects import Effects
from ...core.pages.cursor import Cursor
from ...core.records import Payload, Rows, RunEnd, RunFilter, RunKey, RunRecord, Served, StepRecord
from ...core.run.commands import SendSignal, SignalReplacement
from ...core.run.outcomes import Existing, Refused, Started
from ...core.states import RunStatus
from ...core.times import Timestamp


class Signalled(msgspec.Struct, frozen=True):
    """`delivered`: a step was waiting."""

    run: RunKey
    delivered: bool


class SignalReplaced(msgspec.Struct, frozen=True):
    """`resumed`: the run was paused because of the value, and goes on."""

    run: RunKey
    status: RunStatus
    resumed: bool


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """A new run with the results that `source` had before `from_step` was begun, or with all of them if it is empty;
    `outputs` replace recorded ones by step id."""

    source: RunKey
    from_step: str
    new_run_id: str
    workflow_id: str
    request_id: str
    version: str | None = None
    outputs: Mapping[str, Payload] = {}


class RunVerbs(Protocol):
    """One run at a time, except lists. What changes runs returns an outcome (None: no such run) and effects."""

    async def get_run(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord | None:
        """By run id, or the latest run with that workflow_id; with payloads."""
        ...

    async def list_runs(self, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int) -> Rows[RunRecord]:
        """Newest first by (created_at, run_id); without payloads. A "prev" cursor reads towards the newer; its rows
        come newest first, too."""
        ...

    async def count_runs(self, namespace: str, where: RunFilter, cap: int) -> int:
        """At most `cap`."""
        ...

    async def endings_of(self, runs: Sequence[RunKey], /) -> Sequence[RunEnd | RunStatus | None]:
        """For each: how it ended, its status if it has not, None if there is no such run. Covers as many of them, from
        the first, as make a page of bytes; at least one."""
        ...

    async def cancel_run(
        self, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp
    ) -> tuple[RunStatus | None, Effects]:
        """Ask for the run to stop. Never claimed: CANCELLED at once. Ended: nothing changes."""
        ...

    async def signal_run(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", signal: SendSignal, now: Timestamp
    ) -> tuple[Signalled | Refused | None, Effects]:
        """Give a run a signal, under its row lock: bound to the oldest step that waits for that name (recorded with a
        seq; a SLEEPING run becomes PENDING), else buffered in order. Refused if the run has ended or its buffer is
        full. By workflow_id: the run that has not ended, else the latest."""
        ...

    async def replace_signal(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", change: SignalReplacement, now: Timestamp
    ) -> tuple[SignalReplaced | Refused | None, Effects]:
        """Replace, or drop, a value that no code has received, under the run's lock: the one that the run is PAUSED for
        because it does not fit (the run becomes PENDING; the old value stays in the history as an earlier attempt of
        the wait), else the oldest of that name that no step waits for. A dropped value's wait is open again, or gets
        the next one. Refused if there is none."""
        ...

    async def terminate_run(self, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        """CANCELLED with kind TERMINATED, without cleanup, whoever holds it."""
        ...

    async def pause_run(self, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        """PENDING and SLEEPING become PAUSED; a RUNNING run is asked to (pause_requested) and is PAUSED when it is
        released or parked."""
        ...

    async def resume_run(self, run: RunKey, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        """PAUSED becomes PENDING, its problem is forgotten and its lost leases are 0; withdraws a pause request."""
        ...

    async def retry_run(
        self, run: RunKey, from_step: str, request_id: str, now: Timestamp
    ) -> tuple[RunStatus | Refused | None, Effects]:
        """FAILED becomes PENDING: forgets `from_step` (empty: error.subject_id if that names a step) and every result
        with a higher seq than it, keeps the rest and the first failure (as an earlier attempt of that step). Refused if
        the run has not failed, the step does not exist, or the workflow_id is active again. Children that no step has
        any more are cancelled with the next cascade."""
        ...

    async def fork_run(self, fork: Fork, now: Timestamp) -> tuple[Started | Existing | Refused | None, Effects]: ...

    async def resume_diverged(self, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp) -> Effects:
        """Runs of these types and versions that were paused because other code did not fit, and that this build has not
        tried, become PENDING."""
        ...

    async def cascade(self, now: Timestamp, cancel_by: Timestamp, limit: int) -> tuple[bool, Effects]:
        """Ask children to stop whose parent has ended or is to be cancelled (close policy "cancel", not attached), or
        whose step was abandoned or forgotten; like cancel_run, at most `limit` at a time. Returns whether there may be
        more."""
        ...

    async def list_steps(
        self, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
    ) -> Rows[StepRecord] | None:
        """In the order in which they were begun, with earlier attempts. None: no such run."""
        ...

    async def get_step(self, run: RunKey, step_id: str) -> StepRecord | None: ...
