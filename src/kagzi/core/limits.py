"""Every limit of the engine, with its unit in its name. Nothing is unbounded."""

import msgspec

KIB = 1024
MIB = 1024 * KIB

PAYLOAD_BYTES = 2 * MIB
PAYLOAD_WARN_BYTES = 256 * KIB
NAME_BYTES = 256
PAGE_DEFAULT_ROWS = 50
PAGE_MAX_ROWS = 1_000
PAGE_BYTES = 1 * MIB  # of any list; a single row may exceed it
PAGE_ATTEMPTS = 10_000  # earlier attempts of all steps of a page
LOST_ATTEMPT_NUMBERS = 1_000
"""Of a run whose holder is lost so many of the last numbers are searched for attempts that were lost with it."""
STEPS_PER_RUN = 50_000
MESSAGE_SOFT_BYTES = 1 * MIB  # senders cut here; a single payload may exceed it
MESSAGE_HARD_BYTES = 4 * MIB
MESSAGE_READ_BYTES = (
    4 * MESSAGE_HARD_BYTES
)  # what a client reads: a run that is handed over with its input, context and a step
HISTORY_PAGE_BYTES = 256 * KIB
ANSWERS_BYTES = 24 * MIB  # of answers that are being made or have not been taken: per server
ANSWERS_NAMESPACE_BYTES = 16 * MIB  # likewise, of one namespace
ANSWERS_KEPT_BYTES = 8 * MIB  # ends of runs that wait to be sent to those who wait for them: per server
EXPORTS_BYTES = 16 * MIB  # as ANSWERS_BYTES; apart, because an export may take long
EXPORTS_NAMESPACE_BYTES = 8 * MIB
EXPORT_RESERVED_BYTES = 4 * MIB
ANSWER_RESERVED_BYTES = 8 * MIB  # for one, until its size is known
LABELS = 64
METADATA_ENTRIES = 64
POLL_WAIT_MS = 60_000
POLL_DEFAULT_WAIT_MS = 30_000
POLL_TASKS = 100
BATCH_OPERATIONS = 200  # begin and completion of a step are two, and one row
BATCH_BYTES = 4 * MIB
BATCH_ANSWER_BYTES = (
    1 * MIB
)  # of recorded payloads that one batch reads to answer; what asks for more is done in the next one
CLAIM_BYTES = 4 * MIB  # that a claim reads, if its runs are about as large as those of the last one
START_BATCH_ITEMS = 1_000
BULK_RUNS = 100  # of an operation on many runs, done and counted at a time
TRANSFER_LINE_BYTES = 12 * MIB  # of a run that is exported or imported: a step with its input, output and details
TRANSFER_ROWS = 200  # read or written at a time
TRANSFER_BYTES = 1 * MIB  # likewise, more or less
JOURNAL_QUEUE_OPERATIONS = 50_000  # per namespace; beyond it callers get RESOURCE_EXHAUSTED
JOURNAL_QUEUE_BYTES = 64 * MIB  # likewise
SESSION_OPERATIONS = 2 * BATCH_OPERATIONS  # of one worker that wait to be written; beyond it none is read from it
JOURNAL_TOTAL_BYTES = 128 * MIB  # of all namespaces together; beyond it each has its share
JOURNAL_SHARE_BYTES = 1 * MIB  # what a namespace may queue however much the others have
UNREAD_SESSION_BYTES = (
    4 * MIB
)  # answers and tasks that wait for a worker to read them; beyond it nothing more is read from it
UNREAD_TOTAL_BYTES = 64 * MIB  # of all sessions together; beyond it each has its share
UNREAD_SHARE_BYTES = 128 * KIB
COUNT_CAP = 10_000
PRIORITY_MIN = -100
PRIORITY_MAX = 100
WORKER_MAX_CONCURRENT = 10_000
HEARTBEAT_LEASES = WORKER_MAX_CONCURRENT  # that a heartbeat, or the first message of a session, may name
LEASES_AT_ONCE = 200  # renewed, cut or handed back in one transaction: others' writes go in between
WORKER_TYPES = 1_000
VERSIONS = 1_000  # of a workflow type that are looked at when one is chosen, the latest first seen first
VERSION_OPEN_RUNS = 100_000  # of a namespace, the oldest ones, among which those of each version are counted
TRIED_BUILDS = 100  # remembered of each run, the latest: builds whose code did not fit it
WORKER_EVENTS = 1_000  # kept of each worker
WORKER_EVENTS_AGE_US = 30 * 86_400 * 1_000_000
DIAGNOSTICS = 16  # a worker may report in one message
TROUBLE_DETAIL_BYTES = 4 * KIB
DIAGNOSTICS_LOGGED = 20  # lines a minute in the server's log of what one worker reports
DIAGNOSTICS_LOGGED_TOTAL = 200  # likewise, of all workers together
ERROR_MESSAGE_BYTES = 16 * KIB
ERROR_TRACEBACK_BYTES = 64 * KIB
ERROR_CAUSES = 8
SIGNALS_BUFFERED = 10_000  # per run, sent and not yet consumed
STATUS_TEXT_BYTES = 1_024
CLEANUP_MS = 300_000
FULL_RETRY_AFTER_MS = 1_000  # what a start is told that a full type refuses
RUNNING_RUNS_MAX = 1_000_000  # that a limit of a workflow type may name
STARTS_PER_SECOND_MAX = 1_000_000
STARTS_PER_SECOND_MIN = 0.001
SCHEDULE_ID_BYTES = 200  # the id of its runs has the nominal time behind it
SCHEDULE_CATCHUP_DEFAULT = 100
SCHEDULE_CATCHUP_MAX = 1_000
SCHEDULE_CATCHUP_WINDOW_US = 86_400 * 1_000_000
SCHEDULE_INTERVAL_MIN_US = 1_000_000
SCHEDULE_BACKFILL = 1_000  # runs of one backfill
SCHEDULE_PREVIEW = 1_000
SCHEDULE_SEARCH_STEPS = 20_000  # months and days looked at for one preview or backfill
WAITS_PER_STREAM = 10_000
POLL_TYPES = 1_000  # with pending runs that one look tells; the next look goes on behind them
WATCHES = 4_096  # per server: streams that tell what happens to a run
WATCHES_SHARE = 8  # of each namespace, however many the others have; likewise the following
CALLS = 4_096  # per server: served at once
CALLS_SHARE = 16
LONG_POLLS = 16_384
LONG_POLLS_SHARE = 32
STREAMS = 16_384
STREAMS_SHARE = 32
SHARES = 256  # namespaces for whose shares there is room beyond these limits
SILENT_STREAMS = 1_024  # that have not said whose they are; beyond it the oldest is closed
TABLE_PARTS_MAX = 256  # hash partitions of a table
MEASURE_INTERVAL_MS = 60_000  # how often the bytes a namespace keeps are measured, if it limits them
SESSION_COUNTS_MS = 60_000  # a worker that was not heard of for so long does not count as one
SCANS_AT_ONCE = 2  # counts, lists, figures, exports: of all namespaces together
SCANS_PER_NAMESPACE = 1
SCANS_WAITING = 1_000  # per namespace
STATS_BUCKETS = 10_000  # in one answer
STATS_KEPT_US = 90 * 86_400 * 1_000_000
RETENTION_MIN_S = 60
DURATION_MAX_US = 100 * 366 * 86_400 * 1_000_000  # a century


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The timings and limits an operator may turn. Milliseconds throughout."""

    lease_ms: int = 15_000
    heartbeat_ms: int = 5_000
    reconnect_grace_ms: int = 3_000  # what a lease is cut to when its session closes
    poll_interval_ms: int = 5_000  # how often next due times and pending types are re-read
    resident_wait_ms: int = 1_000  # waits up to this long keep their slot
    payload_bytes: int = PAYLOAD_BYTES
    journal_total_bytes: int = JOURNAL_TOTAL_BYTES
    unread_total_bytes: int = UNREAD_TOTAL_BYTES
    strict_namespaces: bool = False
    jitter: bool = True
    claim_cap: int = 10  # leases lost without progress before a run is quarantined
    cleanup_ms: int = CLEANUP_MS  # how long a cancelled run may clean up
    retention_ms: int = (
        30 * 86_400_000
    )  # how long runs are kept after they have ended, unless their namespace says otherwise
    schedule_late_ms: int = (
        60_000  # a nominal time that comes later than this was missed, and is caught up with or skipped
    )
    housekeeping_ms: int = 60_000  # chores are done every so many of these
