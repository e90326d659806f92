import { useMemo } from "preact/hooks";
import { api } from "../../api/client";
import type { StatsMinuteView, StatsView } from "../../api/types";
import { groupThousands, parseDuration } from "../../model/durations";
import { chipsOf, type RunFilter } from "../../model/filters";
import { isEnded } from "../../model/statuses";
import { formatTime, toMs, toUtc } from "../../model/times";
import { serverNow } from "../../state/clock";
import { prefs } from "../../state/prefs";
import { useResource } from "../../state/resource";
import { Bars, type Bar } from "../../ui/bars";
import { Select } from "../../ui/field";
import { Total } from "../../ui/total";

const MINUTE = 60_000;
const STEPS = { "1m": MINUTE, "5m": 5 * MINUTE, "1h": 60 * MINUTE, "1d": 1440 * MINUTE } as const;
type StepName = keyof typeof STEPS;

/** The time ranges to choose from: their length, and the time step for drawing. */
const SPANS: readonly { value: string; label: string; ms: number; step: StepName }[] = [
  { value: "1h", label: "Last hour", ms: 60 * MINUTE, step: "1m" },
  { value: "6h", label: "Last 6 hours", ms: 360 * MINUTE, step: "5m" },
  { value: "24h", label: "Last 24 hours", ms: 1440 * MINUTE, step: "1h" },
  { value: "7d", label: "Last 7 days", ms: 7 * 1440 * MINUTE, step: "1h" },
  { value: "30d", label: "Last 30 days", ms: 30 * 1440 * MINUTE, step: "1d" },
];

interface StripProps {
  readonly filter: RunFilter;
  readonly span: string;
  /** Whether to load: after the list, which has priority. */
  readonly ready: boolean;
  readonly onSpan: (span: string) => void;
  /** Both ends, as times. */
  readonly onTime: (since: string, until: string, byEnd: boolean) => void;
}

/** How many runs ended in each time step, by status. A click shows the runs of a time step. */
export function Strip({ filter, span, ready, onSpan, onTime }: StripProps) {
  const chosen = SPANS.find((each) => each.value === span) ?? SPANS[0];
  const ms = chosen?.ms ?? 60 * MINUTE;
  const step: StepName = chosen?.step ?? "1m";
  const workflow = filter.workflow.length === 1 ? (filter.workflow[0] ?? null) : null;
  const stats = useResource<StatsView>(
    (abort) => {
      if (!ready) return new Promise<StatsView>(() => {});
      const until = Math.floor(serverNow() / STEPS[step]) * STEPS[step] + STEPS[step];
      return api.get("/stats", { step, since: toUtc(until - ms), until: toUtc(until), workflow }, { abort });
    },
    [step, ms, workflow, ready],
    { every: 5 },
  );
  const zone = prefs.value.zone;
  const buckets = useMemo(() => bucketsOf(stats.value, ms, step), [stats.value, ms, step]);
  const bars = useMemo(() => buckets.map((bucket) => barOf(bucket, step, zone)), [buckets, step, zone]);
  const byEnd = filter.status.length > 0 && filter.status.every(isEnded);
  const selected = useMemo(() => selectedOf(buckets, filter, STEPS[step]), [buckets, filter, step]);
  const totals = sum(buckets);
  return (
    <section class="strip" aria-label="Throughput" data-stale={stats.stale || undefined}>
      <div class="strip-head">
        <span class="strip-totals">
          {stats.value === null ? (
            <span class="dim">loading</span>
          ) : (
            <>
              <span>{groupThousands(totals.started)} started</span>
              <Total state="completed" count={totals.completed} />
              <Total state="failed" count={totals.failed} />
              <Total state="cancelled" count={totals.cancelled} />
            </>
          )}
          <span class="dim">{ofWhat(filter, workflow)}</span>
        </span>
        <Select label="Time range" value={chosen?.value ?? "1h"} options={SPANS} onSelect={onSpan} />
      </div>
      <Bars
        bars={bars}
        label="Ended runs by time"
        height={44}
        selected={selected}
        onSelect={(key) => onTime(toUtc(Number(key)), toUtc(Number(key) + STEPS[step]), byEnd)}
      />
    </section>
  );
}

/** The figures know no other conditions than one workflow: says so where the list has others. */
function ofWhat(filter: RunFilter, workflow: string | null): string {
  const of = workflow === null ? "" : `of ${workflow}`;
  const shown = { ...filter, workflow: workflow === null ? filter.workflow : [], since: "", until: "" };
  const others = chipsOf({ ...shown, ended_since: "", ended_until: "", order: null }).length > 0;
  return others ? `${workflow === null ? "of all runs" : of}, without the other conditions` : of;
}

interface Bucket {
  readonly at: number;
  started: number;
  completed: number;
  failed: number;
  cancelled: number;
}

/** All time steps, including empty ones. */
function bucketsOf(stats: StatsView | null, ms: number, step: StepName): Bucket[] {
  const size = STEPS[step];
  const end = Math.floor(serverNow() / size) * size + size;
  const buckets: Bucket[] = [];
  for (let at = end - ms; at < end; at += size) buckets.push({ at, started: 0, completed: 0, failed: 0, cancelled: 0 });
  const first = end - ms;
  for (const minute of stats?.minutes ?? []) add(buckets[Math.floor((toMs(minute.minute) - first) / size)], minute);
  return buckets;
}

function add(bucket: Bucket | undefined, minute: StatsMinuteView): void {
  if (bucket === undefined) return;
  bucket.started += minute.started;
  bucket.completed += minute.completed;
  bucket.failed += minute.failed;
  bucket.cancelled += minute.cancelled;
}

function barOf(bucket: Bucket, step: StepName, zone: string): Bar {
  const time = formatTime(bucket.at, zone, step === "1d" ? "date" : "datetime");
  const counts = `${bucket.started} started, ${bucket.completed} completed, ${bucket.failed} failed, ${bucket.cancelled} cancelled`;
  return {
    key: String(bucket.at),
    label: `${time}: ${counts}`,
    parts: [
      { state: "completed", value: bucket.completed },
      { state: "cancelled", value: bucket.cancelled },
      { state: "failed", value: bucket.failed },
    ],
  };
}

function selectedOf(buckets: readonly Bucket[], filter: RunFilter, size: number): ReadonlySet<string> {
  const since = momentOf(filter.ended_since || filter.since);
  const until = momentOf(filter.ended_until || filter.until);
  if (since === null || until === null) return new Set();
  return new Set(buckets.filter(({ at }) => at >= since && at + size <= until).map(({ at }) => String(at)));
}

function momentOf(value: string): number | null {
  return value === "" || parseDuration(value) !== null ? null : toMs(value);
}

function sum(buckets: readonly Bucket[]): Bucket {
  const total: Bucket = { at: 0, started: 0, completed: 0, failed: 0, cancelled: 0 };
  for (const bucket of buckets) {
    total.started += bucket.started;
    total.completed += bucket.completed;
    total.failed += bucket.failed;
    total.cancelled += bucket.cancelled;
  }
  return total;
}
