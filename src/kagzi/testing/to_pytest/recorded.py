"""Runs in the form that tests write: the calls of a workflow, and their results."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from ...core.duration import Duration, parse_duration
from ...core.error_details import ErrorDetail
from ...core.errors import InvalidArgument
from ...core.records import DEFAULT_NAMESPACE
from ...core.schedules.scheduled_time import with_scheduled_time
from ...core.states import RunStatus, StepKind, StepStatus
from ...core.times import US_PER_S, Timestamp, from_datetime, us_from_timedelta
from ...core.transfers.images import RunImage, StepImage, write_data
from ...sdk.workflow.codec import ANY, write_context, write_payload
from ...sdk.workflow.failures import describe
from ...sdk.workflow.workflow import Workflow
from ..replay.history import History
from ..replay.result import Replay
from .calls import Seen, plain, replay_seeing

Moment = str | datetime
"""A time with its zone: a datetime, or text in RFC 3339 format."""

When = Duration | datetime
"""A duration since the start of the run; or, for steps that a fork took from its original, a time: datetime or text."""

Order = tuple[int, int]
"""When a call began and when its result arrived, as positions in the order of all events."""

NOTHING: Any = ...
_POINT = re.compile(r"\d{4}-\d\d-\d\dT")


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of the workflow, and its result."""

    step_id: str
    kind: StepKind
    status: StepStatus
    value: Any = None
    error: ErrorDetail | None = None
    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    attempts: int = 1
    at: Timestamp | None = None
    wake_at: Timestamp | None = None
    order: Order | None = None
    child_run_id: str | None = None


class RecordedRun:
    """A recorded run, written call by call: `kagzi export --pytest` writes it, and you can edit it.

        run = RecordedRun(process_order, Order(total=9.5))
        run.step("charge", args=["ada", 9.5], returns={"transaction": "t1"}, at="2s")
        assert run.replay().output == "t1"

    Calls are in the order in which they began. Calls that overlap give their begin and end with `order`. Times are
    durations since the start of the run.

    Args:
        workflow: The workflow that ran.
        input: Its input; omit it if the workflow takes none.
        workflow_id: The workflow id that it was started with.
        run_id: Its id; `ctx.uuid()` and `ctx.random()` derive from it.
        created_at: When it was started: the first value of `ctx.now()`.
        version: The version it is pinned to. Default: that of `workflow`.
        namespace: Its namespace.
        attempt: The attempt number of the whole run.
        labels: Its labels.
        context: The value of `start(context=...)`.
        scheduled_at: The time for which a schedule started it.
        deadline_at: Its deadline.
        parent_run_id: The run that started it.
        cancelled_at: When it was asked to cancel, since its start, if it was.
        cancel_reason: Why it was cancelled.

    Raises InvalidArgument for values that have no JSON form, and for times without a zone.
    """

    def __init__(
        self,
        workflow: Workflow[Any, Any],
        input: Any = NOTHING,
        *,
        workflow_id: str = "",
        run_id: str = "00000000-0000-7000-8000-000000000000",
        created_at: Moment = "2026-01-01T00:00:00Z",
        version: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        attempt: int = 1,
        labels: Mapping[str, str] | None = None,
        context: Mapping[str, Any] | None = None,
        scheduled_at: Moment | None = None,
        deadline_at: Moment | None = None,
        parent_run_id: str | None = None,
        cancelled_at: When | None = None,
        cancel_reason: str = "",
    ) -> None:
        self._workflow = workflow
        self._namespace = namespace
        self._calls: list[Call] = []
        self._created_at = created = _timestamp(created_at, "created_at")
        scheduled = None if scheduled_at is None else _timestamp(scheduled_at, "scheduled_at")
        self._image = RunImage(
            run_id=run_id,
            request_id=run_id,
            workflow_id=workflow_id or run_id,
            workflow_type=workflow.name,
            version=version or workflow.version,
            status=RunStatus.RUNNING,
            created_at=created,
            started_at=created,
            last_seq=0,
            attempt=attempt,
            labels=dict(labels or {}),
            parent_run_id=parent_run_id,
            deadline_at=None if deadline_at is None else _timestamp(deadline_at, "deadline_at"),
            cancel_requested_at=None if cancelled_at is None else self._time(cancelled_at, "cancelled_at"),
            cancel_reason=cancel_reason,
            input=None if input is NOTHING else write_data(workflow.write_input(input)),
            context=write_data(with_scheduled_time(write_context(context), scheduled)),
        )

    # --- its calls ----------------------------------------------------------------------------------------------------

    def step(
        self,
        step_id: str,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        returns: Any = None,
        raises: BaseException | ErrorDetail | None = None,
        exhausted: bool = False,
        attempts: int = 1,
        at: When | None = None,
        order: Order | None = None,
        begun: bool = False,
    ) -> None:
        """A step (`ctx.step`, `@step`, an item of `ctx.map`).

        Args:
            step_id: Scope, name and occurrence: `charge`, `charge#2`, `items[kettle]`.
            args: The positional arguments that the workflow must call it with. Default: any.
            kwargs: The keyword arguments, likewise.
            returns: What it returned.
            raises: The error with which it failed permanently, if it did.
            exhausted: Whether it failed because its attempts were used up.
            attempts: The number of attempts.
            at: When it ended, since the start of the run. Default: a second after the call before it.
            order: When it began and ended, if other calls overlap it: positions in the order of all events.
            begun: Whether it has begun and has no result yet.
        """
        error = _error(raises, exhausted=exhausted)
        self._add(
            StepKind.FUNCTION, step_id, returns, error, begun=begun, args=args, kwargs=kwargs, attempts=attempts, at=at,
            order=order,
        )  # fmt: skip

    def sleep(
        self, name: str, *, until: When | None = None, at: When | None = None, order: Order | None = None,
        begun: bool = False,
    ) -> None:  # fmt: skip
        """A `ctx.sleep` or `ctx.sleep_until` with this `name` that ended; `until` is its due time. `at`, `order` and
        `begun` are as in `step`."""
        wake_at = None if until is None else self._time(until, "until")
        self._add(StepKind.SLEEP, name, None, None, begun=begun, at=at, order=order, wake_at=wake_at)

    def signal(
        self,
        step_id: str,
        value: Any = None,
        *,
        raises: BaseException | ErrorDetail | None = None,
        at: When | None = None,
        order: Order | None = None,
        begun: bool = False,
        until: When | None = None,
    ) -> None:
        """A `ctx.wait_for` that received `value`; one that timed out `raises`. `until` is when it times out; `step_id`,
        `at`, `order` and `begun` are as in `step`."""
        wake_at = None if until is None else self._time(until, "until")
        self._add(StepKind.SIGNAL, step_id, value, _error(raises), begun=begun, at=at, order=order, wake_at=wake_at)

    def child(
        self,
        step_id: str,
        *,
        returns: Any = None,
        raises: BaseException | ErrorDetail | None = None,
        run_id: str = "",
        at: When | None = None,
        order: Order | None = None,
        begun: bool = False,
    ) -> None:
        """A `ctx.child` or `ctx.start_child`: `run_id` is the run that it started; `step_id`, `returns`, `raises`,
        `at`, `order` and `begun` are as in `step`."""
        child = run_id or f"child-{len(self._calls)}"
        self._add(StepKind.CHILD, step_id, returns, _error(raises), begun=begun, at=at, order=order, child_run_id=child)

    def race(self, step_id: str, winner: str, *, at: When | None = None, order: Order | None = None) -> None:
        """A `ctx.race` with this `step_id` that the branch `winner` won. It ended `at`, in that `order`."""
        self._add(StepKind.RACE, step_id, winner, None, at=at, order=order)

    def changed(self, step_id: str, *, at: When | None = None, order: Order | None = None) -> None:
        """A `ctx.changed` with this `step_id` that returned True. It was recorded `at`, in that `order`."""
        self._add(StepKind.PATCH, step_id, None, None, at=at, order=order)

    def abandoned(self, kind: StepKind, step_id: str, *, at: When | None = None, order: Order | None = None) -> None:
        """A call of this `kind` that was abandoned before it had a result: its race was lost, or its branch ended.
        `step_id`, `at` and `order` are as in `step`."""
        self._add(kind, step_id, None, None, status=StepStatus.ABANDONED, at=at, order=order)

    # --- using it -----------------------------------------------------------------------------------------------------

    def history(self) -> History:
        """The run as a history: for a Replayer, or to save to a file."""
        images: list[StepImage] = []
        last_at = self._created_at
        for call, (begun_seq, seq) in zip(self._calls, _numbers(self._calls), strict=True):
            at = call.at if call.at is not None else last_at + US_PER_S
            images.append(_image(call, begun_seq, seq, at))
            last_at = max(last_at, at)
        last_seq = max((max(image.begun_seq, image.seq) for image in images), default=0)
        run = msgspec.structs.replace(self._image, last_seq=last_seq)
        return History(run, images, namespace=self._namespace)

    def replay(self) -> Replay:
        """Run the workflow with the recorded results; no step is executed.

        Raises AssertionError if the workflow does not match: it makes other calls, or passes other arguments. Check the
        result yourself: `outcome`, `output` and `error`. Call it from a plain `def test_...`: it runs its own event
        loop.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        replay, seen = replay_seeing(self.history(), [self._workflow])
        if replay.divergence is not None:
            raise AssertionError(f"{replay.divergence}\n\n{replay.divergence.remedy}")
        for call in self._calls:
            problem = _difference(call, seen.get(call.step_id))
            if problem is not None:
                raise AssertionError(problem)
        return replay

    def _add(
        self, kind: StepKind, step_id: str, value: Any, error: ErrorDetail | None, *, begun: bool = False,
        status: StepStatus | None = None, at: When | None, **facts: Any,
    ) -> None:  # fmt: skip
        if any(call.step_id == step_id for call in self._calls):
            raise InvalidArgument(f"{step_id!r} is there twice. The second one is {step_id + '#2'!r}.", field="step_id")
        ended = StepStatus.COMPLETED if error is None else StepStatus.FAILED
        call = Call(
            step_id=step_id,
            kind=kind,
            status=status or (StepStatus.RUNNING if begun else ended),
            value=value,
            error=error,
            at=None if at is None else self._time(at, "at"),
            **facts,
        )
        self._calls.append(call)

    def _time(self, after: When, what: str) -> Timestamp:
        if isinstance(after, datetime) or (isinstance(after, str) and _POINT.match(after)):
            return _timestamp(after, what)
        return self._created_at + us_from_timedelta(parse_duration(after, what=what))


def _difference(call: Call, seen: Seen | None) -> str | None:
    """Describes how the code's call of a step differs from the recorded one."""
    if call.args is None or seen is None or seen.args is None:
        return None
    actual = plain([*seen.args]), plain({**(seen.kwargs or {})})
    wanted = plain([*call.args]), plain({**(call.kwargs or {})})
    if actual == wanted:
        return None
    shown = [f"args={args!r}" + (f", kwargs={kwargs!r}" if kwargs else "") for args, kwargs in (actual, wanted)]
    return (
        f"step {call.step_id!r} is called with {shown[0]}, but was called with {shown[1]}.\n"
        "If the change is meant, correct args= in the test; without args= any arguments will do."
    )


def _image(call: Call, begun_seq: int, seq: int, at: Timestamp) -> StepImage:
    is_open = call.status is StepStatus.RUNNING
    is_done = call.status is StepStatus.COMPLETED
    what = f"value of {call.step_id!r}"
    return StepImage(
        step_id=call.step_id,
        name=call.step_id.rpartition("/")[2].partition("#")[0],
        kind=call.kind,
        status=call.status,
        begun_seq=begun_seq,
        seq=0 if is_open else seq,
        created_at=at,
        started_at=at,
        finished_at=None if is_open else at,
        attempt=call.attempts,
        wake_at=call.wake_at,
        child_run_id=call.child_run_id,
        error=call.error,
        output=write_data(write_payload(ANY, call.value, what=what)) if is_done else None,
    )


def _numbers(calls: Sequence[Call]) -> list[Order]:
    """When each call began and ended. A call without `order` follows all calls written before it."""
    keys: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    last = 0
    for place, call in enumerate(calls):
        if call.order is None:
            keys.append(((last, place, 0), (last, place, 1)))
        else:
            last = max(last, *call.order)
            keys.append(((call.order[0],), (call.order[1],)))
    numbers = {key: number for number, key in enumerate(sorted({key for pair in keys for key in pair}), 1)}
    return [(numbers[begun], numbers[ended]) for begun, ended in keys]


def _timestamp(moment: Moment, what: str) -> Timestamp:
    if isinstance(moment, datetime):
        return from_datetime(moment, what=what)
    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        raise InvalidArgument(
            f"{what}={moment!r} is not a time. Write for example 2026-03-29T06:00:00Z.", field=what
        ) from None
    return from_datetime(read, what=what)


def _error(raised: BaseException | ErrorDetail | None, *, exhausted: bool = False) -> ErrorDetail | None:
    detail = raised if raised is None or isinstance(raised, ErrorDetail) else describe(raised)
    return msgspec.structs.replace(detail, exhausted=True) if exhausted and detail is not None else detail
