-- How many runs took how long, in classes that double (core/stats.py): percentiles cannot be merged, these can. Minutes noted before
-- this have none: their own percentiles stay, and those of longer spans leave them out.
ALTER TABLE run_stats
    ADD COLUMN took_0 bigint,
    ADD COLUMN took_1 bigint,
    ADD COLUMN took_2 bigint,
    ADD COLUMN took_3 bigint,
    ADD COLUMN took_4 bigint,
    ADD COLUMN took_5 bigint,
    ADD COLUMN took_6 bigint,
    ADD COLUMN took_7 bigint,
    ADD COLUMN took_8 bigint,
    ADD COLUMN took_9 bigint,
    ADD COLUMN took_10 bigint,
    ADD COLUMN took_11 bigint,
    ADD COLUMN took_12 bigint,
    ADD COLUMN took_13 bigint,
    ADD COLUMN took_14 bigint,
    ADD COLUMN took_15 bigint,
    ADD COLUMN took_16 bigint,
    ADD COLUMN took_17 bigint,
    ADD COLUMN took_18 bigint,
    ADD COLUMN took_19 bigint,
    ADD COLUMN took_20 bigint,
    ADD COLUMN took_21 bigint,
    ADD COLUMN took_22 bigint,
    ADD COLUMN took_23 bigint,
    ADD COLUMN took_24 bigint,
    ADD COLUMN took_25 bigint,
    ADD COLUMN took_26 bigint,
    ADD COLUMN took_27 bigint,
    ADD COLUMN took_28 bigint,
    ADD COLUMN took_29 bigint,
    ADD COLUMN took_30 bigint,
    ADD COLUMN took_31 bigint;

-- What happened in an hour: the sum of its minutes, which are forgotten long before it is.
CREATE TABLE run_stats_hours (
    namespace text COLLATE "C" NOT NULL,
    workflow_type text COLLATE "C" NOT NULL,
    hour bigint NOT NULL,
    started bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    took_0 bigint,
    took_1 bigint,
    took_2 bigint,
    took_3 bigint,
    took_4 bigint,
    took_5 bigint,
    took_6 bigint,
    took_7 bigint,
    took_8 bigint,
    took_9 bigint,
    took_10 bigint,
    took_11 bigint,
    took_12 bigint,
    took_13 bigint,
    took_14 bigint,
    took_15 bigint,
    took_16 bigint,
    took_17 bigint,
    took_18 bigint,
    took_19 bigint,
    took_20 bigint,
    took_21 bigint,
    took_22 bigint,
    took_23 bigint,
    took_24 bigint,
    took_25 bigint,
    took_26 bigint,
    took_27 bigint,
    took_28 bigint,
    took_29 bigint,
    took_30 bigint,
    took_31 bigint,
    PRIMARY KEY (namespace, hour, workflow_type)
);

CREATE INDEX run_stats_hours_old ON run_stats_hours (hour);

-- Hours that were over before there was this table. The one that is not will be summed up when it is.
INSERT INTO run_stats_hours (namespace, workflow_type, hour, started, completed, failed, cancelled)
SELECT namespace, workflow_type, minute - minute % 3600000000, sum(started), sum(completed), sum(failed), sum(cancelled)
FROM run_stats WHERE minute < (SELECT minute - minute % 3600000000 FROM rolled_up)
GROUP BY namespace, workflow_type, minute - minute % 3600000000;
