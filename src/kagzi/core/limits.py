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
SEARCHED_IDS = 10_000  # that begin as asked for, by a search that asks for more than that
PRIORITY_MIN = -100
PRIORITY_MAX = 100
WORKER_MAX_CONCURRENT = 10_000
HEARTBEAT_LEASES = WORKER_MAX_CONCURRENT  # that a heartbeat, or the first message of a session, may name
LEASES_AT_ONCE = 200  # renewed, cut or handed back in one transaction: others' writes go in between
WORKER_TYPES = 1_000
VERSIONS = 1_000  # of a workflow type that are looked at when one is chosen, the latest first seen first
VERSION_OPEN_RUNS = 100_000  # of a namespace, the oldest ones, among which those of each version are counted
SCHEMA_BYTES = 64 * KIB  # of one schema of an input, an output or a signal, and of a description
SCHEMA_SIGNALS = 100  # of a version
SCHEMAS_BYTES = 1 * MIB  # of all schemas that a worker registers
SCHEMA_DEPTH = 64  # of a schema or value; what is deeper is not checked
SCHEMA_VISITS = 20_000  # steps that one check takes; the rest of the value is not checked
CHECKED_PAYLOAD_BYTES = 64 * KIB  # larger inputs and signals are not checked against schemas
SCHEMA_EARLIER_US = 86_400 * 1_000_000  # how long the schemas that others replaced still count
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
STEP_INPUT_BYTES = 16 * KIB  # of the arguments of a step that are recorded for people
STEP_LOG_LINES = 200  # kept of each step, the last ones
STEP_LOG_BYTES = 64 * KIB  # likewise
STEP_LOG_LINE_BYTES = 4 * KIB  # a longer line is cut
STEP_LOGS_WAITING_BYTES = 1 * MIB  # of all steps of a worker that wait to be sent; beyond it lines are dropped
STEP_LOGS_MESSAGE_BYTES = 256 * KIB  # of lines in one message
STEP_LOGS_QUEUED_BYTES = 4 * MIB  # that wait to be written, per server; beyond it lines are dropped
SIGNALS_BUFFERED = 10_000  # per run, sent and not yet consumed
REQUEST_RUNS = 1_000
"""So many runs of a workflow id, the latest that have ended, are searched for a request that is made again."""
STATUS_TEXT_BYTES = 1_024
STATE_BYTES = 64 * KIB  # of the JSON that a workflow sets as its state
STATE_STORED_BYTES = 2 * STATE_BYTES  # of the same as a server gets it: a codec may have made it longer
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
LIVE_LISTS = 4_096  # streams that tell how a list changes
LIVE_LISTS_SHARE = 8
LIVE_LIST_ROWS = 51  # a page, and the row that tells that there are more
CALLS = 4_096  # per server: served at once
CLIENT_CALLS = 1_000  # of them, that one client makes; the others wait in the client
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
STATS_HOURS_KEPT_US = 400 * 86_400 * 1_000_000
STATS_SHARED_S = 5.0  # so old may be what the runs tell of the running minute, and how many are open
OPEN_RUNS_SHARED_S = 10.0  # so old may be how many runs of each type are open
RETENTION_MIN_S = 60
KEYS = 1_000  # of each namespace that are good at the same time
KEY_SECRETS = 8  # of each key that are good at the same time
BROWSER_SESSIONS = 100  # of each key; a new one ends the oldest
BROWSER_SESSION_US = 12 * 3_600 * 1_000_000
AUDIT_KEPT_US = 365 * 86_400 * 1_000_000  # also how long a key is listed that is not good any more
AUDIT_DETAIL_CHARACTERS = 1_024  # of each detail of an entry
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
    trace_max_age_ms: int = 3_600_000  # a run that is older has a trace for each further claim
    keys_check_ms: int = 3_000  # how often keys in use are read again: one that was revoked ends within three of these
