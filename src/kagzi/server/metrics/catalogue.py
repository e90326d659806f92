"""All metrics, with name, description and labels. The metrics page, its reference in the docs and the checks of
dashboards and alert rules are derived from this list."""

from enum import StrEnum
from typing import NamedTuple

from ...engine.measurements import measurements as counted


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """`words`: the possible values of labels other than namespace and workflow_type, where the list is short. `shared`:
    read from the database, so every server reports the same value."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    shared: bool = False


_TYPE = ("namespace", "workflow_type")
_SHARED_CAP = "Counted no further than 100,000 runs in all."

METRICS = (
    Metric("kagzi_build_info", Kind.GAUGE, "1, with the version of the server and its store.", ("version", "store")),
    Metric("kagzi_ready", Kind.GAUGE, "Whether the server serves: 1, or 0 while /readyz would answer 503."),
    # runs
    Metric(
        "kagzi_runs_started_total", Kind.COUNTER, "Runs that were created.", (*_TYPE, "cause"), words=counted.CAUSES
    ),
    Metric(
        "kagzi_runs_ended_total",
        Kind.COUNTER,
        "Runs that ended.",
        (*_TYPE, "status"),
        words=("completed", "failed", "cancelled"),
    ),
    Metric(
        "kagzi_run_duration_seconds",
        Kind.HISTOGRAM,
        "From the first claim of a run to its end, waits included. Of runs that their workers ended: not of those that "
        "were terminated, or failed at their deadline.",
        _TYPE,
        bounds=counted.RUN_DURATION_S,
    ),
    Metric(
        "kagzi_run_wait_seconds",
        Kind.HISTOGRAM,
        "From the moment a run could be claimed to its claim, each time.",
        _TYPE,
        bounds=counted.RUN_WAIT_S,
    ),
    Metric(
        "kagzi_signals_unread_total",
        Kind.COUNTER,
        "Signals that runs had accepted and not received when they ended, except those that were handed on.",
        _TYPE,
    ),
    Metric(
        "kagzi_step_attempts_total",
        Kind.COUNTER,
        "Attempts of steps that were recorded: completed, failed and to be retried, or failed for good.",
        (*_TYPE, "outcome"),
        words=counted.ATTEMPT_OUTCOMES,
    ),
    # queues
    Metric(
        "kagzi_queue_depth",
        Kind.GAUGE,
        f"Runs that wait for a worker. {_SHARED_CAP}",
        _TYPE,
        shared=True,
    ),
    Metric(
        "kagzi_queue_oldest_age_seconds",
        Kind.GAUGE,
        "How long the run that could be claimed first has been waiting.",
        _TYPE,
        shared=True,
    ),
    Metric(
        "kagzi_queue_held_back",
        Kind.GAUGE,
        "Runs that wait although slots may be free, by the reason: no worker that is there serves the type, it is "
        "paused, or one of its limits is reached.",
        (*_TYPE, "reason"),
        words=("no_worker", "type_paused", "type_limit", "key_limit", "rate_limit"),
        shared=True,
    ),
    Metric(
        "kagzi_open_runs",
        Kind.GAUGE,
        f"Runs that have not ended. {_SHARED_CAP}",
        ("namespace", "status"),
        words=("pending", "running", "sleeping", "paused"),
        shared=True,
    ),
    Metric(
        "kagzi_runs_retrying",
        Kind.GAUGE,
        f"Runs with a step that failed and is tried again. {_SHARED_CAP}",
        ("namespace",),
        shared=True,
    ),
    Metric(
        "kagzi_runs_awaiting_signal",
        Kind.GAUGE,
        f"Runs that wait for a signal. {_SHARED_CAP}",
        ("namespace",),
        shared=True,
    ),
    # outbox
    Metric(
        "kagzi_outbox_starts_total",
        Kind.COUNTER,
        "Starts that this server read from its outbox: a new run, one that was there, put off, or refused and kept.",
        ("outcome",),
        words=counted.OUTBOX_OUTCOMES,
    ),
    Metric(
        "kagzi_outbox_rows",
        Kind.GAUGE,
        "Rows of the outbox, at most 30 seconds ago. Counted no further than 10,000 each.",
        ("state",),
        words=("waiting", "refused"),
        shared=True,
    ),
    # workers
    Metric(
        "kagzi_workers",
        Kind.GAUGE,
        "Workers that are there.",
        ("namespace", "status"),
        words=("online", "draining"),
        shared=True,
    ),
    Metric(
        "kagzi_worker_slots",
        Kind.GAUGE,
        "Runs that the workers hold, and how many more they would take.",
        ("namespace", "state"),
        words=("used", "free"),
        shared=True,
    ),
    Metric("kagzi_sessions", Kind.GAUGE, "Workers that are connected to this server."),
    Metric(
        "kagzi_session_blocked_seconds_total",
        Kind.COUNTER,
        "Time for which sessions were held up: the journal was full, or the worker did not read its responses.",
    ),
    # problems
    Metric("kagzi_leases_lost_total", Kind.COUNTER, "Leases that ran out: a worker died, or was too slow to renew."),
    Metric(
        "kagzi_fenced_writes_total",
        Kind.COUNTER,
        "Writes that were refused because their worker no longer held the lease.",
        ("operation",),
    ),
    Metric(
        "kagzi_runs_quarantined_total",
        Kind.COUNTER,
        "Runs that were paused because they lost too many workers in a row.",
    ),
    Metric(
        "kagzi_runs_diverged_total", Kind.COUNTER, "Runs that were paused because the code did not fit their history."
    ),
    Metric("kagzi_incidents_total", Kind.COUNTER, "Unexpected errors; each has a number in the server's log."),
    # the store
    Metric(
        "kagzi_commit_duration_seconds",
        Kind.HISTOGRAM,
        "From taking a batch of operations to its commit, including the wait for a database that is down.",
        bounds=counted.COMMIT_S,
    ),
    Metric("kagzi_commit_operations", Kind.HISTOGRAM, "Operations that share a commit.", bounds=counted.OPERATIONS),
    Metric("kagzi_journal_queue_operations", Kind.GAUGE, "Operations that have not been committed."),
    Metric("kagzi_journal_queue_bytes", Kind.GAUGE, "Bytes of operations that wait for the next commit."),
    Metric("kagzi_claim_duration_seconds", Kind.HISTOGRAM, "Time of a claim of runs.", bounds=counted.COMMIT_S),
    Metric("kagzi_claim_runs", Kind.HISTOGRAM, "Runs that one claim brought.", bounds=counted.CLAIMED_RUNS),
    Metric(
        "kagzi_store_errors_total",
        Kind.COUNTER,
        "Calls of the database that failed and are repeated.",
        ("kind",),
        words=counted.STORE_ERRORS,
    ),
    Metric(
        "kagzi_store_connections",
        Kind.GAUGE,
        "Connections to the database; of SQLite, its threads.",
        ("state",),
        words=("used", "idle", "closed"),
    ),
    # time
    Metric(
        "kagzi_timer_lateness_seconds",
        Kind.HISTOGRAM,
        "How late the earliest of what was due together was done: `run` is the end of a sleep, backoff, delay, "
        "deadline or lease, `schedule` the time of a schedule.",
        ("kind",),
        words=counted.TIMERS,
        bounds=counted.LATENESS_S,
    ),
    Metric(
        "kagzi_schedule_fires_total",
        Kind.COUNTER,
        "Times of schedules, by what became of them.",
        ("outcome",),
        words=counted.FIRE_OUTCOMES,
    ),
    Metric(
        "kagzi_chore_last_success_timestamp_seconds",
        Kind.GAUGE,
        "When a background task of this server was last done, or left to another server.",
        ("chore",),
    ),
    # calls
    Metric(
        "kagzi_rpc_duration_seconds",
        Kind.HISTOGRAM,
        "Calls by gRPC, WebSocket and in process, without streams. Long polls take as long as they wait.",
        ("method", "code"),
        bounds=counted.CALL_S,
    ),
    Metric(
        "kagzi_http_request_duration_seconds",
        Kind.HISTOGRAM,
        "HTTP requests, until the answer has gone out.",
        ("route", "status_class"),
        words=("2xx", "3xx", "4xx", "5xx"),
        bounds=counted.CALL_S,
    ),
    Metric("kagzi_streams", Kind.GAUGE, "Streams that are open.", ("kind",)),
)
