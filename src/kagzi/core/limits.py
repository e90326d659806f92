"""Every limit of the engine, with its unit in its name. Nothing is unbounded."""

import msgspec

KIB = 1024
MIB = 1024 * KIB

PAYLOAD_BYTES = 2 * MIB
PAYLOAD_WARN_BYTES = 256 * KIB
NAME_BYTES = 256
PAGE_DEFAULT_ROWS = 50
PAGE_MAX_ROWS = 1_000
STEPS_PER_RUN = 50_000
MESSAGE_SOFT_BYTES = 1 * MIB  # senders cut here; a single payload may exceed it
MESSAGE_HARD_BYTES = 4 * MIB
HISTORY_PAGE_BYTES = 256 * KIB
LABELS = 64
METADATA_ENTRIES = 64
POLL_WAIT_MS = 60_000
POLL_DEFAULT_WAIT_MS = 30_000
POLL_TASKS = 100
BATCH_OPERATIONS = 200  # begin and completion of a step are two, and one row
BATCH_BYTES = 4 * MIB
START_BATCH_ITEMS = 1_000
JOURNAL_QUEUE_OPERATIONS = 50_000  # per namespace; beyond it callers get RESOURCE_EXHAUSTED
JOURNAL_QUEUE_BYTES = 64 * MIB  # likewise
COUNT_CAP = 10_000
PRIORITY_MIN = -100
PRIORITY_MAX = 100
WORKER_MAX_CONCURRENT = 10_000
WORKER_TYPES = 1_000
ERROR_MESSAGE_BYTES = 16 * KIB
ERROR_TRACEBACK_BYTES = 64 * KIB
ERROR_CAUSES = 8
SIGNALS_BUFFERED = 10_000  # per run, sent and not yet consumed
STATUS_TEXT_BYTES = 1_024
WAITS_PER_STREAM = 10_000
DURATION_MAX_US = 100 * 366 * 86_400 * 1_000_000  # a century


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The timings and limits an operator may turn. Milliseconds throughout."""

    lease_ms: int = 15_000
    heartbeat_ms: int = 5_000
    reconnect_grace_ms: int = 3_000  # what a lease is cut to when its session closes
    look_interval_ms: int = 5_000  # how often next due times and pending types are re-read
    resident_wait_ms: int = 1_000  # waits up to this long keep their slot
    payload_bytes: int = PAYLOAD_BYTES
    strict_namespaces: bool = False
    jitter: bool = True
    claim_cap: int = 10  # leases lost without progress before a run is quarantined
    cleanup_ms: int = 300_000  # how long a cancelled run may clean up
