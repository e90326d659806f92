// Sums up statistics over time. Percentiles of minutes cannot be merged; counts by duration class can.

/** `StatsMinuteView` of the API. */
export interface StatsBucket {
  readonly minute: string;
  readonly workflow: string;
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly took: readonly number[];
}

export interface Totals {
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Share among completed and failed runs; null: there were none. */
  readonly failedShare: number | null;
  readonly p50: number | null;
  readonly p95: number | null;
}

export function totalsOf(buckets: Iterable<StatsBucket>): Totals {
  const sums = { started: 0, completed: 0, failed: 0, cancelled: 0 };
  const took: number[] = [];
  for (const bucket of buckets) {
    sums.started += bucket.started;
    sums.completed += bucket.completed;
    sums.failed += bucket.failed;
    sums.cancelled += bucket.cancelled;
    bucket.took.forEach((count, place) => (took[place] = (took[place] ?? 0) + count));
  }
  const ended = sums.completed + sums.failed;
  return {
    ...sums,
    failedShare: ended ? sums.failed / ended : null,
    p50: percentileMs(took, 50),
    p95: percentileMs(took, 95),
  };
}

/** The approximate percentile: class 0 is below 1 ms, class n from 2^(n-1) ms to below 2^n ms. The exact value is in
 * the same class. Null: no run ended. */
export function percentileMs(took: readonly number[], percent: number): number | null {
  const count = took.reduce((sum, here) => sum + here, 0);
  if (!count) return null;
  const rank = Math.max(Math.ceil((count * percent) / 100), 1);
  let below = 0;
  for (const [place, here] of took.entries()) {
    if (below + here >= rank) {
      const least = place ? 2 ** (place - 1) : 0;
      const end = 2 ** place;
      return place >= 31 ? least : least + ((end - least) * (2 * (rank - below) - 1)) / (2 * here);
    }
    below += here;
  }
  return null;
}

/** A count for each time step from `from` on, zero where there are no data. */
export function countsByStep(
  buckets: Iterable<StatsBucket>,
  from: number,
  stepMs: number,
  steps: number,
  of: (bucket: StatsBucket) => number,
  at: (rfc3339: string) => number,
): number[] {
  const counts = new Array<number>(steps).fill(0);
  for (const bucket of buckets) {
    const index = Math.floor((at(bucket.minute) - from) / stepMs);
    if (index >= 0 && index < steps) counts[index] = (counts[index] ?? 0) + of(bucket);
  }
  return counts;
}

/** `0.4 %`, `12 %`; one decimal below ten. */
export function formatShare(share: number): string {
  const percent = share * 100;
  return `${percent > 0 && percent < 9.95 ? percent.toFixed(1).replace(/\.0$/, "") : Math.round(percent)}%`;
}
