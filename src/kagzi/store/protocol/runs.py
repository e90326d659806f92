"""Runs and their steps, as people ask about them and change them."""

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


RequestVerb: TypeAlias = Literal["wake", "retry"]


class SignalCheck(Protocol):
    def __call__(self, workflow_type: str, version: str) -> Refused | None:
        """What there is to say against a signal for a run of this type and version; the version is empty if it is not
        known."""
        ...


def fits_any_run(workflow_type: str, version: str) -> Refused | None:
    return None


class RunVerbs(Protocol):
    """One run at a time, except lists. What changes runs returns an outcome (None: no such run) and effects."""

    async def get_run(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord | None:
        """By run id; by workflow_id the run that has not ended, else the latest. With payloads."""
        ...

    async def ended_run_of_request(
        self, namespace: str, workflow_id: str, verb: RequestVerb, request_id: str, /
    ) -> RunKey | None:
        """The ended run of a workflow id that this request has woken, or tried again, if it is one of the latest
        REQUEST_RUNS."""
        ...

    async def list_runs(
        self, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int, *, order: RunOrder = "created"
    ) -> Rows[RunRecord]:
        """Newest first by (created_at, run_id), or by (finished_at, run_id); without payloads. A "prev" cursor reads
        towards the newer; its rows come newest first, too. A search by id has one page, and looks at no more than
        limits.SEARCHED_IDS of the ids that begin so."""
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
        self,
        namespace: str,
        *,
        run_id: str = "",
        workflow_id: str = "",
        signal: SendSignal,
        now: Timestamp,
        check: SignalCheck = fits_any_run,
    ) -> tuple[Signalled | Refused | None, Effects]:
        """Give a run a signal, under its row lock: bound to the oldest step that waits for that name (recorded with a
        seq; a SLEEPING run becomes PENDING), else buffered in order. Refused if the run has ended or its buffer is
        full. By workflow_id: the run that has not ended, else the latest. What `check` says
        against a signal that is new, and that the run would take, is the answer; it may be called in any thread.

        A request id that is used again answers the run that has its signal, and changes nothing: this run; by
        workflow_id also one that has ended, of the latest REQUEST_RUNS; by run_id also one that it continued as."""
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
        """Replace, or drop, a value that no code has received, under the run's lock: the one that the run is PAUSED for
        because it does not fit (the run becomes PENDING; the old value stays in the history as an earlier attempt of
        the wait), else the oldest of that name that no step waits for. A dropped value's wait is open again, or gets
        the next one. Refused if there is none. `check`, and a request id that is used again: as in `signal_run`."""
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

    async def adopt_run(
        self, run: RunKey, build_id: str, now: Timestamp, *, audit: AuditEntry | None = None
    ) -> tuple[RunStatus | Refused | None, Effects]:
        """What `decide_adoption` says: from now on only workers of this build may claim the run (empty: all of them),
        and a PAUSED one is resumed as by `resume_run`. `audit` is kept if that changes anything."""
        ...

    async def wake_run(self, run: RunKey, wake: Wake, now: Timestamp, /) -> tuple[Woken | Refused | None, Effects]:
        """What `decide_wake` says: a retry, a sleep or a later start is due now, which is noted in the history; a
        SLEEPING run is PENDING."""
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

    async def timeline(self, run: RunKey, query: TimelineQuery, /) -> Timeline | None:
        """Steps without payloads. None: no such run."""
        ...

    async def signal_waits(self, namespace: str, run_ids: Sequence[str], /) -> Sequence[SignalWait]:
        """What these runs wait for from outside: in the order of the runs, of each the oldest first, at most
        WAITS_OF_A_RUN. Of as many of them, from the first, as make a page of bytes."""
        ...

    async def get_step(self, run: RunKey, step_id: str) -> StepRecord | None: ...
