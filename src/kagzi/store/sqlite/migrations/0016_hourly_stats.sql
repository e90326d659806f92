-- How many runs took how long, in classes that double (core/stats.py): percentiles cannot be merged, these can. Minutes noted before
-- this have none: their own percentiles stay, and those of longer spans leave them out.
ALTER TABLE run_stats ADD COLUMN took_0 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_1 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_2 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_3 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_4 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_5 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_6 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_7 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_8 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_9 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_10 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_11 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_12 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_13 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_14 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_15 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_16 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_17 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_18 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_19 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_20 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_21 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_22 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_23 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_24 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_25 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_26 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_27 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_28 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_29 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_30 INTEGER;
ALTER TABLE run_stats ADD COLUMN took_31 INTEGER;

-- What happened in an hour: the sum of its minutes, which are forgotten long before it is.
CREATE TABLE run_stats_hours (
    namespace     TEXT NOT NULL,
    workflow_type TEXT NOT NULL,
    hour          INTEGER NOT NULL,
    started       INTEGER NOT NULL,
    completed     INTEGER NOT NULL,
    failed        INTEGER NOT NULL,
    cancelled     INTEGER NOT NULL,
    took_0        INTEGER,
    took_1        INTEGER,
    took_2        INTEGER,
    took_3        INTEGER,
    took_4        INTEGER,
    took_5        INTEGER,
    took_6        INTEGER,
    took_7        INTEGER,
    took_8        INTEGER,
    took_9        INTEGER,
    took_10       INTEGER,
    took_11       INTEGER,
    took_12       INTEGER,
    took_13       INTEGER,
    took_14       INTEGER,
    took_15       INTEGER,
    took_16       INTEGER,
    took_17       INTEGER,
    took_18       INTEGER,
    took_19       INTEGER,
    took_20       INTEGER,
    took_21       INTEGER,
    took_22       INTEGER,
    took_23       INTEGER,
    took_24       INTEGER,
    took_25       INTEGER,
    took_26       INTEGER,
    took_27       INTEGER,
    took_28       INTEGER,
    took_29       INTEGER,
    took_30       INTEGER,
    took_31       INTEGER,
    PRIMARY KEY (namespace, hour, workflow_type)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_stats_hours_old ON run_stats_hours (hour);

-- Hours that were over before there was this table. The one that is not will be summed up when it is.
INSERT INTO run_stats_hours (namespace, workflow_type, hour, started, completed, failed, cancelled)
SELECT namespace, workflow_type, minute - minute % 3600000000, sum(started), sum(completed), sum(failed), sum(cancelled)
FROM run_stats WHERE minute < (SELECT minute - minute % 3600000000 FROM rolled_up)
GROUP BY namespace, workflow_type, minute - minute % 3600000000;
