-- What happened to workers, and who is there. 0001 says how times and text are written.
CREATE TABLE worker_events (
    namespace text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    kind text COLLATE "C" NOT NULL
        CHECK (kind IN ('registered', 'reconnected', 'draining', 'drained', 'left', 'lost', 'trouble')),
    detail text NOT NULL DEFAULT '',
    PRIMARY KEY (namespace, worker_id, at, number)
);

CREATE INDEX worker_events_of_namespace ON worker_events (namespace, at, number);
CREATE INDEX worker_events_old ON worker_events (at);

-- Who may be lost is looked for among those who are there. last_heartbeat_at is in no index: it changes with every look.
CREATE INDEX workers_present ON workers (namespace, worker_id) WHERE status <> 3;

-- And who left long ago: of those the time does not change any more.
CREATE INDEX workers_gone ON workers (last_heartbeat_at) WHERE status = 3;

-- One default of a type.
CREATE UNIQUE INDEX workflow_versions_default ON workflow_versions (namespace, workflow_type) WHERE is_default;
