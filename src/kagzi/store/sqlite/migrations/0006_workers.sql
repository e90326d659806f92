-- What happened to workers, and who is there.
CREATE TABLE worker_events (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL
        CHECK (kind IN ('registered', 'reconnected', 'draining', 'drained', 'left', 'lost', 'trouble')),
    detail    TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX worker_events_of_worker ON worker_events (namespace, worker_id, at, number);
CREATE INDEX worker_events_of_namespace ON worker_events (namespace, at, number);
CREATE INDEX worker_events_old ON worker_events (at);

-- Who may be lost is looked for among those who are there.
CREATE INDEX workers_present ON workers (namespace, worker_id) WHERE status <> 'offline';

-- And who left long ago: of those the time does not change any more.
CREATE INDEX workers_gone ON workers (last_heartbeat_at) WHERE status = 'offline';

-- One default of a type.
CREATE UNIQUE INDEX workflow_versions_default ON workflow_versions (namespace, workflow_type) WHERE is_default = 1;
