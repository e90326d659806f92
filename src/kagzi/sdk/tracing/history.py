"""The trace of a run from its history: the spans that workers record live, with the same ids, for any run."""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ...core.error_details import ErrorDetail, ErrorKind
from ...core.errors import RequestError
from ...core.records import Payload
from ...core.states import RunStatus, StepKind, StepStatus
from ...core.traces.ids import (
    PART_ENTRIES,
    SpanRef,
    attempt_id,
    is_in_trace_of_start,
    parse_traceparent,
    start_of,
    stretch_before,
    stretch_of,
)
from ..workflow.codec import read_context
from .attributes import (
    ERROR_TYPE,
    Attributes,
    TracedRun,
    common_step_attributes,
    run_name,
    start_attributes,
    start_name,
    step_attributes,
    step_name,
    stretch_attributes,
)
from .run_context import RunStart, start_in

if TYPE_CHECKING:
    from ..client.run_records import RunInfo
    from ..client.step_records import StepRecord

Kind = Literal["producer", "consumer", "internal"]
SPANS_MAX = 100_000
"""Of one trace: enough for a hundred runs with a thousand steps each. Backends accept far fewer."""


class SpanLink(msgspec.Struct, frozen=True):
    """A related span, perhaps in another trace."""

    trace_id: str
    span_id: str


class SpanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An ended span. Ids are in hexadecimal."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    kind: Kind
    started_at: datetime
    finished_at: datetime
    attributes: Attributes
    error: ErrorDetail | None = None
    links: tuple[SpanLink, ...] = ()


@dataclass(frozen=True, slots=True)
class RunHistory:
    """A run with its steps."""

    info: "RunInfo"
    steps: "Sequence[StepRecord]"


Fetch = Callable[[str], Awaitable[RunHistory]]
"""Returns the history of a run by its id."""


async def trace_of(history: RunHistory, fetch: Fetch) -> list[SpanRecord]:
    """The spans of a run and of the runs that it started, parents before their children."""
    spans: list[SpanRecord] = []
    waiting = [(history, await _start_of(history, fetch))]
    seen: set[str] = set()
    while waiting and len(spans) < SPANS_MAX:
        here, start = waiting.pop(0)
        if here.info.id in seen:
            continue
        seen.add(here.info.id)
        work = _Work(here, start)
        spans.extend(work.spans())
        for step in here.steps:
            if step.kind is StepKind.CHILD and step.child and not _is_foreign(here.info, step):
                child = await fetch(step.child)
                if child.info.parent == here.info.id:  # else it existed before, and the run only waits for it
                    waiting.append((child, _continued(child.info) or RunStart(work.stretch_of_child(step))))
    return spans


async def _start_of(history: RunHistory, fetch: Fetch) -> RunStart:
    """The start as the run's worker sees it: from its context, which the worker of its parent wrote."""
    info = history.info
    start = start_in(_context(info), info.id)
    if start is not None:
        return start if start.links or not info.parent else RunStart(start.ref)
    if not info.parent or not info.parent_step:
        return RunStart(start_of(info.id), 0)
    parent = await fetch(info.parent)
    work = _Work(parent, await _start_of(parent, fetch))
    step = next((each for each in parent.steps if each.id == info.parent_step), None)
    return RunStart(start_of(info.id), 0) if step is None else RunStart(work.stretch_of_child(step))


def _continued(info: "RunInfo") -> RunStart | None:
    """The start of a run that continues another; None for any other run."""
    start = start_in(_context(info), info.id)
    return start if start is not None and start.links else None


def _context(info: "RunInfo") -> dict[str, Any]:
    try:
        return read_context(Payload(info.context) if info.context else None)
    except RequestError:
        return {}  # encoded, and the codec is not available


Part = tuple[int, int]
"""A part of the work on a run: a claim, and the number of the part. See `core/traces/ids.py`."""


class _Work:
    """The work on a run, divided as its workers divided it."""

    def __init__(self, history: RunHistory, start: RunStart) -> None:
        self._info = info = history.info
        self._start = start
        self._steps = [step for step in history.steps if not _is_foreign(info, step)]
        self._run = TracedRun(info.id, info.namespace, info.workflow, info.workflow_id, info.version or "")
        self._attempts = [each for step in self._steps for each in _attempts(step)]
        self._numbers: dict[int, list[int]] = {}  # seqs of what began in each claim, in order
        for claim, begun_seq in self._entries():
            self._numbers.setdefault(claim, []).append(begun_seq)
        for numbers in self._numbers.values():
            numbers.sort()

    def _entries(self) -> Iterator[tuple[int, int]]:
        """The claim and seq of all attempts that began, however they ended, and of all children that were started."""
        for step in self._steps:
            if step.kind in (StepKind.FUNCTION, StepKind.CHILD):
                yield step.claim, step.begun_seq
            for each in step.earlier:
                if each.claim != step.claim or each.begun_seq != step.begun_seq:
                    yield each.claim, each.begun_seq

    def _part(self, claim: int, begun_seq: int) -> Part:
        return claim, bisect_left(self._numbers.get(claim, ()), begun_seq) // PART_ENTRIES

    def _ref(self, part: Part) -> SpanRef:
        return stretch_of(self._start.ref, self._info.id, *part, own_traces_from=self._info.own_traces_from)

    def stretch_of_child(self, step: "StepRecord") -> SpanRef:
        return self._ref(self._part(step.claim, step.begun_seq))

    def spans(self) -> Iterator[SpanRecord]:
        info, start = self._info, self._start
        if start.caller is not None and not info.forked_from:
            yield _span(
                start.ref,
                start.caller,
                start_name(info.workflow),
                "producer",
                (info.created_at, info.created_at),
                start_attributes(info.namespace, info.workflow, workflow_id=info.workflow_id, run_id=info.id),
                links=start.links,
            )
        yield from self._stretches()
        for each in self._attempts:
            part = self._ref(self._part(each.claim, each.begun_seq))
            yield _span(
                part._replace(span_id=attempt_id(info.id, each.step.id, each.attempt, each.claim)),
                part.span_id,
                step_name(each.step.name),
                "internal",
                (each.started_at, each.finished_at),
                step_attributes(common_step_attributes(self._run, each.worker_id), each.step.id, each.attempt),
                error=each.error,
            )

    def _stretches(self) -> Iterator[SpanRecord]:
        """One for each part in which an attempt ended, a child was started, or the run ended."""
        info = self._info
        times: dict[Part, list[datetime]] = {}
        workers: dict[int, str] = {}
        for each in self._attempts:
            part = self._part(each.claim, each.begun_seq)
            times.setdefault(part, []).extend((each.started_at, each.finished_at))
            workers[each.claim] = each.worker_id
        for step in self._steps:
            if step.kind is StepKind.CHILD and step.child:
                part = self._part(step.claim, step.begun_seq)
                times.setdefault(part, []).append(step.started_at or step.created_at or info.created_at)
                workers[step.claim] = step.worker_id or ""
        ended = info.finished_at if _ended_by_worker(info) else None
        last = self._part(info.claims, self._numbers.get(info.claims, [0])[-1])
        if ended is not None:
            times.setdefault(last, []).append(ended)
        senders = self._senders(None if ended is None else last)
        for part, moments in sorted(times.items()):
            first = info.started_at if part == (1, 0) and info.started_at is not None else min(moments)
            joined, before = is_in_trace_of_start(*part, info.own_traces_from), stretch_before(*part)
            yield _span(
                self._ref(part),
                self._start.ref.span_id if joined else 0,
                run_name(info.workflow),
                "consumer",
                (first, max(moments)),
                stretch_attributes(self._run, workers.get(part[0], ""), part[0]),
                error=info.error if ended is not None and part == last else None,
                links=(
                    *(() if joined else (self._start.ref,)),
                    *(() if before is None else (self._ref(before),)),
                    *senders.get(part, ()),
                ),
            )

    def _senders(self, last: Part | None) -> dict[Part, list[SpanRef]]:
        """Senders of signals, by the first part in which something began, or the run ended (`last`), after them."""
        begun = sorted((seq, claim) for claim, numbers in self._numbers.items() for seq in numbers)
        linked: dict[Part, list[SpanRef]] = {}
        for step in sorted(self._steps, key=lambda each: each.seq):
            sender = parse_traceparent(step.sent_by) if step.kind is StepKind.SIGNAL else None
            if sender is None or not step.seq:
                continue
            place = bisect_left(begun, (step.seq + 1, 0))
            part = self._part(begun[place][1], begun[place][0]) if place < len(begun) else last
            if part is not None:
                linked.setdefault(part, []).append(sender)
        return linked


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An ended attempt."""

    step: "StepRecord"
    attempt: int
    claim: int
    begun_seq: int
    worker_id: str
    started_at: datetime
    finished_at: datetime
    error: ErrorDetail | None


def _attempts(step: "StepRecord") -> Iterator[_Attempt]:
    if step.kind is not StepKind.FUNCTION:
        return
    for each in step.earlier:
        began = each.started_at or each.finished_at
        place = (step, each.attempt, each.claim, each.begun_seq, each.worker_id or "")
        yield _Attempt(*place, began, each.finished_at, each.error)
    if step.status in (StepStatus.COMPLETED, StepStatus.FAILED) and step.finished_at is not None:
        began, error = step.started_at or step.finished_at, None
        if step.status is StepStatus.FAILED:
            error = step.error_detail
        place = (step, step.attempts, step.claim, step.begun_seq, step.worker_id or "")
        yield _Attempt(*place, began, step.finished_at, error)


def _is_foreign(info: "RunInfo", step: "StepRecord") -> bool:
    """Whether the run that this one was forked from executed the step."""
    return bool(info.forked_from) and not step.claim


def _ended_by_worker(info: "RunInfo") -> bool:
    """Whether a worker ended the run, and not a termination or its deadline."""
    if not info.status.ended or not info.claims:
        return False
    if info.status is RunStatus.COMPLETED or info.error is None:
        return True
    return info.error.kind not in (ErrorKind.TERMINATED, ErrorKind.TIMEOUT)


def _span(  # noqa: PLR0917  what every span has
    ref: SpanRef,
    parent: int,
    name: str,
    kind: Kind,
    times: tuple[datetime, datetime],
    attributes: Attributes,
    *,
    error: ErrorDetail | None = None,
    links: tuple[SpanRef, ...] = (),
) -> SpanRecord:
    if error is not None:
        attributes = {**attributes, ERROR_TYPE: error.type or error.kind.value}
    return SpanRecord(
        trace_id=f"{ref.trace_id:032x}",
        span_id=f"{ref.span_id:016x}",
        parent_span_id=f"{parent:016x}" if parent else None,
        name=name,
        kind=kind,
        started_at=times[0],
        finished_at=max(times),
        attributes=attributes,
        error=error,
        links=tuple(SpanLink(f"{link.trace_id:032x}", f"{link.span_id:016x}") for link in links),
    )
