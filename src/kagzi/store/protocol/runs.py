"""Runs and their steps, as users read and change them."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from ...core.effects import Effects
from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.pages.signal_waits import SignalWait
from ...core.pages.timeline import Timeline, TimelineQuery
from ...core.records import Payload, Rows, RunEnd, RunFilter, RunKey, RunOrder, RunRecord, Served, StepRecord
from ...core.run.commands import SendSignal, SignalReplacement
from ...core.run.outcomes import Existing, Refused, Started
from ...core.run.wakes import Wake, Woken
from ...core.states import RunStatus
from ...core.times import Timestamp


class Signalled(msgspec.Struct, frozen=True):
    """`delivered`: a step was waiting."""

    run: RunKey
    delivered: bool


class SignalReplaced(msgspec.Struct, frozen=True):
    """`resumed`: the run was paused because of the value, and continues."""

    run: RunKey
    status: RunStatus
    resumed: bool


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """A new run with the results that `source` had before `from_step` was begun, or with all of them if that is empty.
    `outputs` replaces recorded outputs by step id."""

    source: RunKey
    from_step: str
    new_run_id: str
    workflow_id: str
    request_id: str
    version: str | None = None
    outputs: Mapping[str, Payload] = {}


RequestVerb: TypeAlias = Literal["wake", "retry"]


class SignalCheck(Protocol):
    def __call__(self, workflow_type: str, version: str) -> Refused | None:
        """Why a run of this type and version cannot take the signal; None: it can. The version is empty if it is not
        known."""
        ...


def fits_any_run(workflow_type: str, version: str) -> Refused | None:
    return None


class RunVerbs(Protocol):
    """One run at a time, except lists. Verbs that change runs return an outcome (None: no such run) and effects."""

    async def get_run(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord | None:
        """By run id, or by workflow_id: the open run, else the latest. With payloads."""
        ...

    async def ended_run_of_request(
        self, namespace: str, workflow_id: str, verb: RequestVerb, request_id: str, /
    ) -> RunKey | None:
        """The ended run of a workflow id that this request woke or retried, if it is one of the latest REQUEST_RUNS."""
        ...

    async def list_runs(
        self, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int, *, order: RunOrder = "created"
    ) -> Rows[RunRecord]:
        """Newest first by (created_at, run_id), or by (finished_at, run_id); without payloads. A "prev" cursor reads
        towards the newer ones; its rows are newest first, too. A search by id has one page, and reads at most
        limits.SEARCHED_IDS of the ids with that prefix."""
        ...

    async def count_runs(self, namespace: str, where: RunFilter, cap: int) -> int:
        """At most `cap`."""
        ...

    async def endings_of(self, runs: Sequence[RunKey], /) -> Sequence[RunEnd | RunStatus | None]:
        """For each run how it ended, its status if it is open, None if it does not exist. Covers as many of the first
        runs as fit in a page of bytes; at least one."""
        ...

    async def cancel_run(
        self, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp
    ) -> tuple[RunStatus | None, Effects]:
        """Request cancellation. A run that was never claimed is CANCELLED at once; an ended one does not change."""
        ...

    async def signal_run(
        self,
        namespace: str,
        *,
        run_id: str = "",
        workflow_id: str = "",
        signal: SendSignal,
        now: Timestamp,
        check: SignalCheck = fits_any_run,
    ) -> tuple[Signalled | Refused | None, Effects]:
        """Send a signal to a run, under its row lock. It is bound to the oldest step that waits for that name (recorded
        with a seq; a SLEEPING run becomes PENDING), else buffered in order. Refused if the run has ended or its buffer
        is full. By workflow_id: the open run, else the latest. `check` is called for a new signal that the run would
        take, in any thread; its refusal is returned.

        A repeated request id returns the run that has its signal, and changes nothing: this run; by workflow_id also an
        ended one among the latest REQUEST_RUNS; by run_id also a run that it continued as."""
        ...

    async def replace_signal(
        self,
        namespace: str,
        *,
        run_id: str = "",
        workflow_id: str = "",
        change: SignalReplacement,
        now: Timestamp,
        check: SignalCheck = fits_any_run,
    ) -> tuple[SignalReplaced | Refused | None, Effects]:
        """Replace or drop a value that no code has received, under the run's lock. This is the value for which the run
        is PAUSED because it does not fit (the run becomes PENDING; the old value stays in the history as an earlier
        attempt of the wait), else the oldest buffered one of that name. The wait of a dropped value is open again, or
        gets the next value. Refused if there is none. `check` and a repeated request id: as in `signal_run`."""
        ...

    async def terminate_run(self, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        """CANCELLED with kind TERMINATED, without cleanup, even if a worker holds the run."""
        ...

    async def pause_run(self, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        """A PENDING or SLEEPING run becomes PAUSED; a RUNNING one gets a pause request (pause_requested) and is PAUSED
        when it is released or parked."""
        ...

    async def resume_run(self, run: RunKey, now: Timestamp) -> tuple[RunStatus | None, Effects]:
        """A PAUSED run becomes PENDING; its problem is cleared and its lost leases are 0. Withdraws a pause request."""
        ...

    async def adopt_run(
        self, run: RunKey, build_id: str, now: Timestamp, *, audit: AuditEntry | None = None
    ) -> tuple[RunStatus | Refused | None, Effects]:
        """Apply `decide_adoption`: from now on only workers of this build may claim the run (empty: any build), and a
        PAUSED run is resumed as by `resume_run`. `audit` is written if anything changes."""
        ...

    async def wake_run(self, run: RunKey, wake: Wake, now: Timestamp, /) -> tuple[Woken | Refused | None, Effects]:
        """Apply `decide_wake`: a retry, sleep or delayed start becomes due now, which the history records; a SLEEPING
        run becomes PENDING."""
        ...

    async def retry_run(
        self, run: RunKey, from_step: str, request_id: str, now: Timestamp
    ) -> tuple[RunStatus | Refused | None, Effects]:
        """A FAILED run becomes PENDING. Deletes `from_step` (empty: error.subject_id if that names a step) and every
        result with a higher seq; keeps the others and the first failure (as an earlier attempt of that step). Refused
        if the run has not failed, the step does not exist, or the workflow_id is active again. The next cascade cancels
        children that no longer belong to a step."""
        ...

    async def fork_run(self, fork: Fork, now: Timestamp) -> tuple[Started | Existing | Refused | None, Effects]: ...

    async def resume_diverged(self, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp) -> Effects:
        """Runs of these types and versions that were paused because of a divergence, and that this build has not tried,
        become PENDING."""
        ...

    async def cascade(self, now: Timestamp, cancel_by: Timestamp, limit: int) -> tuple[bool, Effects]:
        """Request cancellation, as cancel_run does, of children whose parent has ended or is being cancelled (close
        policy "cancel", not attached), or whose step was abandoned or deleted; at most `limit` at a time. Returns
        whether there may be more."""
        ...

    async def list_steps(
        self, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
    ) -> Rows[StepRecord] | None:
        """In the order in which they were begun, with earlier attempts. None: no such run."""
        ...

    async def timeline(self, run: RunKey, query: TimelineQuery, /) -> Timeline | None:
        """Steps without payloads. None: no such run."""
        ...

    async def signal_waits(self, namespace: str, run_ids: Sequence[str], /) -> Sequence[SignalWait]:
        """The external signals that these runs wait for: in the order of the runs, oldest first within a run, at most
        WAITS_OF_A_RUN of each. Covers as many of the first runs as fit in a page of bytes."""
        ...

    async def unread_signals(self, run: RunKey, limit: int, /) -> Mapping[str, int]:
        """How many unread signals of each name the run has, for at most so many names, in their order."""
        ...

    async def get_step(self, run: RunKey, step_id: str) -> StepRecord | None: ...

    async def runs_with_step(self, namespace: str, step_id: str, /) -> Sequence[str]:
        """The ids of up to two runs that have such a step, among the newest SEARCHED_RUNS of the namespace."""
        ...

    async def list_forgotten_steps(
        self, run: RunKey, *, name: str | None, after: tuple[int, int] | None, limit: int, payloads: bool
    ) -> Rows[StepRecord] | None:
        """Steps that retries of the run have discarded, with their earlier attempts: the latest retry first, those of
        one retry in the order in which they were begun. `after`: continue after this (retry_seq, begun_seq). At most
        FORGOTTEN_STEPS of a run and FORGOTTEN_BYTES are kept, the newest. None: no such run."""
        ...

    async def get_forgotten_step(self, run: RunKey, step_id: str, retry_seq: int) -> StepRecord | None: ...
