"""Every limit of the engine, with its unit in its name. Nothing is unbounded."""

import msgspec

KIB = 1024
MIB = 1024 * KIB

PAYLOAD_BYTES = 2 * MIB
PAYLOAD_WARN_BYTES = 256 * KIB
NAME_BYTES = 256
PAGE_DEFAULT_ROWS = 50
PAGE_MAX_ROWS = 1_000
PAGE_BYTES = 1 * MIB  # in any list; a single row may exceed it
PAGE_ATTEMPTS = 10_000  # earlier attempts of all steps of a page
LOST_ATTEMPT_NUMBERS = 1_000
"""When a run loses its worker, steps begun within this many last sequence numbers are checked for lost attempts."""
STEPS_PER_RUN = 50_000
CLEANUP_STEPS = 1_000  # beyond these, for cleanup scopes and for the records of races and changes
FORGOTTEN_STEPS = 2_000  # steps that retries of a run have discarded, kept for people: the newest, per run
FORGOTTEN_BYTES = 8 * MIB  # the same: their payloads and errors
MESSAGE_SOFT_BYTES = 1 * MIB  # senders start a new message here; a single payload may exceed it
MESSAGE_HARD_BYTES = 4 * MIB
MESSAGE_READ_BYTES = (
    4 * MESSAGE_HARD_BYTES
)  # what a client accepts in one message: a claimed run with its input, context and a step
MESSAGE_ELEMENTS = 20_000  # of all lists and maps of a message together; they are counted before it is decoded
MESSAGE_OPERATIONS = 50_000  # the same, for the operations of a worker: they are read in parts
MESSAGE_UNCOUNTED_BYTES = 64 * KIB  # smaller messages have at most 32,768 elements, of two bytes each; none is counted
HISTORY_PAGE_BYTES = 256 * KIB
ANSWERS_BYTES = 24 * MIB  # responses that are being built or not yet sent: per server
ANSWERS_NAMESPACE_BYTES = 16 * MIB  # the same for each namespace
ANSWERS_KEPT_BYTES = 8 * MIB  # ends of runs, queued for the clients that wait for them: per server
EXPORTS_BYTES = 16 * MIB  # as ANSWERS_BYTES; separate, because an export may take long
EXPORTS_NAMESPACE_BYTES = 8 * MIB
EXPORT_RESERVED_BYTES = 4 * MIB
ANSWER_RESERVED_BYTES = 8 * MIB  # for one response, until its size is known
LABELS = 64
METADATA_ENTRIES = 64
POLL_WAIT_MS = 60_000
POLL_DEFAULT_WAIT_MS = 30_000
POLL_TASKS = 100
BATCH_OPERATIONS = 200  # begin and completion of a step are two operations and one row
BATCH_BYTES = 4 * MIB
BATCH_ANSWER_BYTES = (
    1 * MIB
)  # recorded payloads that one batch reads to respond; an operation that needs more is done in the next batch
CLAIM_BYTES = 4 * MIB  # that a claim may read; runs are assumed to be as large as those of the last claim
START_BATCH_ITEMS = 1_000
BULK_RUNS = 100  # runs that a bulk operation changes and counts at a time
TRANSFER_LINE_BYTES = 12 * MIB  # one line of an export or import: a step with its input, output and details
TRANSFER_ROWS = 200  # read or written at a time
TRANSFER_BYTES = 1 * MIB  # the same, approximately
JOURNAL_QUEUE_OPERATIONS = 50_000  # per namespace; beyond it callers get RESOURCE_EXHAUSTED
JOURNAL_QUEUE_BYTES = 64 * MIB  # the same
SESSION_OPERATIONS = 2 * BATCH_OPERATIONS  # unwritten operations of one worker; beyond it none is read from it
JOURNAL_TOTAL_BYTES = 128 * MIB  # all namespaces together; beyond it each has its share
JOURNAL_SHARE_BYTES = 1 * MIB  # what a namespace may always queue
UNREAD_SESSION_BYTES = (
    4 * MIB
)  # responses and tasks that a worker has not read; beyond it nothing more is read from the worker
UNREAD_TOTAL_BYTES = 64 * MIB  # all sessions together; beyond it each has its share
UNREAD_SHARE_BYTES = 128 * KIB
INCOMPLETE_BYTES = 64 * MIB  # messages of which only parts have arrived: those of workers, and those of connections
COUNT_CAP = 10_000
SEARCHED_RUNS = 1_000  # newest runs of a namespace among which the run of a step id is looked for
SEARCHED_IDS = 10_000  # ids with the prefix that a search by id examines at most
PRIORITY_MIN = -100
PRIORITY_MAX = 100
WORKER_MAX_CONCURRENT = 10_000
HEARTBEAT_LEASES = WORKER_MAX_CONCURRENT  # leases that a heartbeat, or the first message of a session, may name
LEASES_AT_ONCE = 200  # renewed, shortened or handed back in one transaction: other writes run in between
CONNECTION_FACTS = 50_000  # workers and polled runs, of all connections, that calls may refer to without naming a lease
WORKER_TYPES = 1_000
VERSIONS = 1_000  # versions of a workflow type that are considered when one is chosen, the newest first
VERSION_OPEN_RUNS = 100_000  # open runs of a namespace, oldest first, that are counted by version
SCHEMA_BYTES = 64 * KIB  # one schema of an input, an output or a signal, or one description
SCHEMA_SIGNALS = 100  # per version
SCHEMAS_BYTES = 1 * MIB  # all schemas that a worker registers
SCHEMA_DEPTH = 64  # of a schema or value; deeper parts are not checked
SCHEMA_VISITS = 20_000  # steps of one check; the rest of the value is not checked
CHECKED_PAYLOAD_BYTES = 64 * KIB  # larger inputs and signals are not checked against schemas
SCHEMA_EARLIER_US = 86_400 * 1_000_000  # how long replaced schemas remain valid
TRIED_BUILDS = 100  # latest builds whose code did not match the run, remembered per run
WORKER_EVENTS = 1_000  # kept per worker
WORKER_EVENTS_AGE_US = 30 * 86_400 * 1_000_000
DIAGNOSTICS = 16  # that a worker may report in one message
TROUBLE_DETAIL_BYTES = 4 * KIB
DIAGNOSTICS_LOGGED = 20  # lines per minute in the server's log for the reports of one worker
DIAGNOSTICS_LOGGED_TOTAL = 200  # the same, for all workers together
UNREAD_LOGGED = 20  # lines per minute for runs that end with unread signals
ERROR_MESSAGE_BYTES = 16 * KIB
ERROR_TRACEBACK_BYTES = 64 * KIB
ERROR_CAUSES = 8
STEP_INPUT_BYTES = 16 * KIB  # recorded arguments of a step, for people
STEP_LOG_LINES = 200  # the last lines, kept per step
STEP_LOG_BYTES = 64 * KIB  # the same
STEP_LOG_LINE_BYTES = 4 * KIB  # a longer line is truncated
STEP_LOGS_WAITING_BYTES = 1 * MIB  # unsent lines of all steps of a worker; beyond it lines are dropped
STEP_LOGS_MESSAGE_BYTES = 256 * KIB  # of lines in one message
STEP_LOGS_QUEUED_BYTES = 4 * MIB  # unwritten lines, per server; beyond it lines are dropped
SIGNALS_BUFFERED = 10_000  # per run, sent and not yet consumed
REQUEST_RUNS = 1_000
"""How many ended runs of a workflow id, the latest ones, are searched for a repeated request."""
STATUS_TEXT_BYTES = 1_024
STATE_BYTES = 64 * KIB  # the JSON that a workflow sets as its state
STATE_STORED_BYTES = 2 * STATE_BYTES  # the same as stored: a codec may have made it longer
CLEANUP_MS = 300_000
EVICTED_AT_ONCE = 100  # runs that one start cancels in its place, if there are more than the limit allows
FULL_RETRY_AFTER_MS = 1_000  # sent with a start that was refused because the type is full
RUNNING_RUNS_MAX = 1_000_000  # the maximum value of a workflow type's limit
STARTS_PER_SECOND_MAX = 1_000_000
STARTS_PER_SECOND_MIN = 0.001
SCHEDULE_ID_BYTES = 200  # its runs' ids append the nominal time
SCHEDULE_CATCHUP_DEFAULT = 100
SCHEDULE_CATCHUP_MAX = 1_000
SCHEDULE_CATCHUP_WINDOW_US = 86_400 * 1_000_000
SCHEDULE_INTERVAL_MIN_US = 1_000_000
SCHEDULE_BACKFILL = 1_000  # runs of one backfill
SCHEDULE_PREVIEW = 1_000
SCHEDULE_SEARCH_STEPS = 20_000  # months and days examined for one preview or backfill
WAITS_PER_STREAM = 10_000
POLL_TYPES = 1_000  # types with pending runs that one poll reads; the next poll continues after them
WATCHES = 4_096  # streams of the events of a run, per server
WATCHES_SHARE = 8  # guaranteed to each namespace; so are the other shares below
LIVE_LISTS = 4_096  # streams of the changes of a list
LIVE_LISTS_SHARE = 8
LIVE_LIST_ROWS = 51  # a page, and one row that shows that there are more
CALLS = 4_096  # served at once, per server
CLIENT_CALLS = 1_000  # concurrent calls of one client; others wait in the client
CALLS_SHARE = 16
LONG_POLLS = 16_384
LONG_POLLS_SHARE = 32
STREAMS = 16_384
STREAMS_SHARE = 32
SHARES = 256  # namespaces for whose shares there is capacity beyond these limits
SILENT_STREAMS = 1_024  # streams that have not sent their namespace; beyond it the oldest is closed
TABLE_PARTS_MAX = 256  # hash partitions of a table
MEASURE_INTERVAL_MS = 60_000  # how often the stored bytes of a namespace are measured, if it limits them
SESSION_COUNTS_MS = 60_000  # a session that has not reported for this long is not counted
SCANS_AT_ONCE = 2  # counts, lists, statistics, exports: all namespaces together
SCANS_PER_NAMESPACE = 1
SCANS_WAITING = 1_000  # per namespace
STATS_BUCKETS = 10_000  # in one response
STATS_KEPT_US = 90 * 86_400 * 1_000_000
STATS_HOURS_KEPT_US = 400 * 86_400 * 1_000_000
STATS_SHARED_S = 5.0  # maximum age of the cached figures of the current minute, and of the number of open runs
OPEN_RUNS_SHARED_S = 10.0  # maximum age of the cached numbers of open runs by type
RETENTION_MIN_S = 60
KEYS = 1_000  # valid at the same time in each namespace
KEY_SECRETS = 8  # valid at the same time for each key
BROWSER_SESSIONS = 100  # per key; a new one ends the oldest
BROWSER_SESSION_US = 12 * 3_600 * 1_000_000
AUDIT_KEPT_US = 365 * 86_400 * 1_000_000  # also how long a key is listed after it has become invalid
AUDIT_DETAIL_CHARACTERS = 1_024  # per detail of an entry
DURATION_MAX_US = 100 * 366 * 86_400 * 1_000_000  # a century


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The timings and limits that an operator may change. Milliseconds throughout."""

    lease_ms: int = 15_000
    heartbeat_ms: int = 5_000
    reconnect_grace_ms: int = 3_000  # the remaining time of a lease when its session closes
    poll_interval_ms: int = 5_000  # how often next due times and pending types are re-read
    resident_wait_ms: int = 1_000  # waits up to this long keep their slot
    payload_bytes: int = PAYLOAD_BYTES
    journal_total_bytes: int = JOURNAL_TOTAL_BYTES
    unread_total_bytes: int = UNREAD_TOTAL_BYTES
    strict_namespaces: bool = False
    jitter: bool = True
    claim_cap: int = 10  # leases lost without progress before a run is quarantined
    cleanup_ms: int = CLEANUP_MS  # how long a cancelled run may clean up
    retention_ms: int = 30 * 86_400_000  # how long ended runs are kept, unless their namespace says otherwise
    schedule_late_ms: int = (
        60_000  # a scheduled time that is handled later than this was missed: it is caught up on or skipped
    )
    housekeeping_ms: int = 60_000  # chores run at multiples of this interval
    trace_max_age_ms: int = 3_600_000  # an older run gets a new trace for each further claim
    keys_check_ms: int = 3_000  # how often keys in use are re-read: a revoked key is refused within three intervals
