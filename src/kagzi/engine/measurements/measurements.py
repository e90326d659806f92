"""Counters of a server. Each event immediately adds to a number here; nothing is read, awaited or formatted.

Names from outside are bounded: a limited number of namespaces, workflow types and pairs of both, then `other`. Nothing
is counted by run, step, worker or key.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ...core.errors import Contended, StoreBroken, StoreLost, Unavailable
from ...core.records import ClaimedRun, RunEnd
from ...core.states import ENDED, RunStatus
from ...core.times import US_PER_S, Timestamp
from .values import OTHER, Histogram, Labels, Names, Sample, Samples

NAMESPACES = 50
WORKFLOW_TYPES = 200
PAIRS = 250
"""Pairs of a namespace and a workflow type. Further types count as `other` of their namespace."""

RUN_DURATION_S = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600, 86_400)
RUN_WAIT_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600)
COMMIT_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
OPERATIONS = (1, 2, 5, 10, 20, 50, 100, 200)
CLAIMED_RUNS = (0, 1, 2, 5, 10, 20, 50, 100)
LATENESS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600)
CALL_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

CAUSES = ("client", "signal", "child", "schedule", "continue_as_new", "fork")
ATTEMPT_OUTCOMES = ("completed", "retried", "failed")
FIRE_OUTCOMES = ("started", "skipped", "failed")
STORE_ERRORS = ("unavailable", "timeout", "contended", "broken", "lost", "unexpected")
TIMERS = ("run", "schedule")
OUTBOX_OUTCOMES = ("started", "existing", "postponed", "refused")

Gauge = Callable[[], Mapping[Labels, float]]


class TypeCounts:
    """The counters of one workflow type in one namespace."""

    __slots__ = ("completed_attempts", "duration", "ended", "failed_attempts", "started", "unread_signals", "wait")

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()  # by cause
        # Rare ones begin with zero: Prometheus does not count the first sample of a series as an increase.
        self.ended: Counter[str] = Counter(dict.fromkeys(sorted(ENDED), 0))  # by status
        self.unread_signals = 0  # with which runs ended
        self.completed_attempts = 0  # of steps
        self.failed_attempts: Counter[str] = Counter(dict.fromkeys(ATTEMPT_OUTCOMES[1:], 0))  # by outcome
        self.duration = Histogram(RUN_DURATION_S)
        self.wait = Histogram(RUN_WAIT_S)

    @property
    def attempts(self) -> Counter[str]:
        return Counter({ATTEMPT_OUTCOMES[0]: self.completed_attempts, **self.failed_attempts})


class Measurements:
    """The numbers of one process, which start at zero."""

    def __init__(self) -> None:
        self.namespaces = Names(NAMESPACES)
        self.workflow_types = Names(WORKFLOW_TYPES)
        self._types: dict[Labels, TypeCounts] = {}
        self.leases_lost = 0
        self.runs_quarantined = 0
        self.runs_diverged = 0
        self.incidents = 0
        self.session_blocked_s = 0.0
        self.fenced_writes: Counter[str] = Counter()  # by operation
        self.schedule_fires: Counter[str] = Counter(dict.fromkeys(FIRE_OUTCOMES, 0))  # by outcome
        self.store_errors: Counter[str] = Counter(dict.fromkeys(STORE_ERRORS, 0))  # by kind
        self.outbox: Counter[str] = Counter(dict.fromkeys(OUTBOX_OUTCOMES, 0))  # starts, by outcome
        self.streams: Counter[str] = Counter()  # open now, by kind
        self.chores: dict[str, float] = {}  # when each was last done
        self.commit_duration = Histogram(COMMIT_S)
        self.commit_operations = Histogram(OPERATIONS)
        self.claim_duration = Histogram(COMMIT_S)
        self.claim_runs = Histogram(CLAIMED_RUNS)
        self.timer_lateness: dict[Labels, Histogram] = {(kind,): Histogram(LATENESS_S) for kind in TIMERS}
        self.calls: dict[Labels, Histogram] = {}  # by method and code
        self.requests: dict[Labels, Histogram] = {}  # by route and class of status
        self._gauges: dict[str, Gauge] = {}

    # --- runs and steps -----------------------------------------------------------------------------------------------

    def of(self, namespace: str, workflow_type: str) -> TypeCounts:
        """The counters of this type. `workflow_type` is empty if it is unknown."""
        counts = self._types.get((namespace, workflow_type))
        return counts if counts is not None else self._admit(namespace, workflow_type)

    def labels(self, namespace: str, workflow_type: str) -> Labels:
        """The labels of this type."""
        pair = (self.namespaces.admit(namespace), self.workflow_types.admit(workflow_type))
        return pair if pair in self._types or len(self._types) < PAIRS else (pair[0], OTHER)

    def _admit(self, namespace: str, workflow_type: str) -> TypeCounts:
        return self._types.setdefault(self.labels(namespace, workflow_type), TypeCounts())

    def started(self, namespace: str, workflow_type: str, cause: str, runs: int = 1) -> None:
        self.of(namespace, workflow_type).started[cause] += runs

    def ended(self, namespace: str, workflow_type: str, status: RunStatus, took_us: int | None) -> None:
        """`took_us`: from its first claim; None: unknown."""
        counts = self.of(namespace, workflow_type)
        counts.ended[status.value] += 1
        if took_us is not None:
            counts.duration.observe(max(took_us, 0) / US_PER_S)

    def ended_otherwise(self, endings: Iterable[RunEnd]) -> None:
        """Counts runs that ended without a command of their worker."""
        for end in endings:
            self.ended(end.run.namespace, end.workflow_type, end.status, None)

    def claimed(self, runs: Iterable[ClaimedRun]) -> None:
        for run in runs:
            if run.ready_at is not None:
                waited_us = max(run.claimed_at - run.ready_at, 0)
                self.of(run.run.namespace, run.workflow_type).wait.observe(waited_us / US_PER_S)

    # --- the store ----------------------------------------------------------------------------------------------------

    def committed(self, seconds: float, operations: int) -> None:
        self.commit_duration.observe(seconds)
        self.commit_operations.observe(operations)

    def claim(self, seconds: float, runs: int) -> None:
        self.claim_duration.observe(seconds)
        self.claim_runs.observe(runs)

    def store_failed(self, error: BaseException) -> None:
        self.store_errors[_kind_of(error)] += 1

    # --- time ---------------------------------------------------------------------------------------------------------

    def timer_fired(self, kind: str, late_us: int) -> None:
        self.timer_lateness[kind,].observe(max(late_us, 0) / US_PER_S)

    def chore_done(self, name: str, at: Timestamp) -> None:
        self.chores[name] = at / US_PER_S

    # --- calls --------------------------------------------------------------------------------------------------------

    def called(self, method: str, code: str, seconds: float) -> None:
        _observe(self.calls, (method, code), CALL_S, seconds)

    def requested(self, route: str, status_class: str, seconds: float) -> None:
        _observe(self.requests, (route, status_class), CALL_S, seconds)

    # --- values that are read on demand -------------------------------------------------------------------------------

    def gauge(self, name: str, ask: Gauge) -> None:
        """`ask` is called when the numbers are shown; it must not wait."""
        self._gauges[name] = ask

    def samples(self) -> Samples:
        """All current values."""
        pairs = self._types.items()
        samples: Samples = {
            "kagzi_runs_started_total": _by_type((labels, counts.started) for labels, counts in pairs),
            "kagzi_runs_ended_total": _by_type((labels, counts.ended) for labels, counts in pairs),
            "kagzi_signals_unread_total": [(labels, counts.unread_signals) for labels, counts in pairs],
            "kagzi_step_attempts_total": _by_type((labels, counts.attempts) for labels, counts in pairs),
            "kagzi_run_duration_seconds": [(labels, counts.duration.value) for labels, counts in pairs],
            "kagzi_run_wait_seconds": [(labels, counts.wait.value) for labels, counts in pairs],
            "kagzi_commit_duration_seconds": [((), self.commit_duration.value)],
            "kagzi_commit_operations": [((), self.commit_operations.value)],
            "kagzi_claim_duration_seconds": [((), self.claim_duration.value)],
            "kagzi_claim_runs": [((), self.claim_runs.value)],
            "kagzi_leases_lost_total": [((), self.leases_lost)],
            "kagzi_runs_quarantined_total": [((), self.runs_quarantined)],
            "kagzi_runs_diverged_total": [((), self.runs_diverged)],
            "kagzi_incidents_total": [((), self.incidents)],
            "kagzi_session_blocked_seconds_total": [((), self.session_blocked_s)],
            "kagzi_fenced_writes_total": _counted(self.fenced_writes),
            "kagzi_schedule_fires_total": _counted(self.schedule_fires),
            "kagzi_outbox_starts_total": _counted(self.outbox),
            "kagzi_store_errors_total": _counted(self.store_errors),
            "kagzi_streams": _counted(self.streams),
            "kagzi_chore_last_success_timestamp_seconds": _counted(self.chores),
            "kagzi_timer_lateness_seconds": _observed(self.timer_lateness),
            "kagzi_rpc_duration_seconds": _observed(self.calls),
            "kagzi_http_request_duration_seconds": _observed(self.requests),
        }
        for name, ask in self._gauges.items():
            samples[name] = list(ask().items())
        return samples


def _observe(histograms: dict[Labels, Histogram], labels: Labels, bounds: tuple[float, ...], value: float) -> None:
    histogram = histograms.get(labels)
    if histogram is None:
        histogram = histograms[labels] = Histogram(bounds)
    histogram.observe(value)


def _kind_of(error: BaseException) -> str:
    match error:
        case TimeoutError():
            return "timeout"
        case Contended():
            return "contended"
        case StoreBroken():
            return "broken"
        case StoreLost():
            return "lost"
        case Unavailable():
            return "unavailable"
        case _:
            return "unexpected"


def _by_type(pairs: Iterable[tuple[Labels, Counter[str]]]) -> list[Sample]:
    return [((*labels, word), count) for labels, counts in pairs for word, count in counts.items()]


def _counted(counts: Mapping[str, float]) -> list[Sample]:
    return [((word,), count) for word, count in counts.items()]


def _observed(histograms: Mapping[Labels, Histogram]) -> list[Sample]:
    return [(labels, histogram.value) for labels, histogram in histograms.items()]
