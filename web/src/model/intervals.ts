// Arithmetic of time intervals.

export interface Interval {
  readonly start: number;
  readonly end: number;
}

/** The union of the intervals: sorted, without overlaps; adjacent ones are merged. */
export function mergeIntervals(intervals: Iterable<Interval>): Interval[] {
  const sorted = [...intervals].filter((each) => each.end >= each.start).sort((a, b) => a.start - b.start);
  const merged: { start: number; end: number }[] = [];
  for (const { start, end } of sorted) {
    const last = merged.at(-1);
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else merged.push({ start, end });
  }
  return merged;
}

/** From the first begin to the last end; null if empty. */
export function spanOf(intervals: Iterable<Interval>): Interval | null {
  let start = Infinity;
  let end = -Infinity;
  for (const each of intervals) {
    start = Math.min(start, each.start);
    end = Math.max(end, each.end);
  }
  return start <= end ? { start, end } : null;
}

/** How many intervals cover each of `buckets` equal parts. `place` maps a time to a position from 0 to `width`. */
export function densityOf(
  intervals: Iterable<Interval>,
  place: (ms: number) => number,
  width: number,
  buckets: number,
): Uint32Array {
  // Counts begins and ends, then sums them up: the cost does not depend on the length of the intervals.
  const changes = new Int32Array(buckets + 1);
  const bucketOf = (ms: number) => Math.min(buckets - 1, Math.max(0, Math.floor((place(ms) / width) * buckets)));
  for (const { start, end } of intervals) {
    const first = bucketOf(start);
    changes[first] = (changes[first] ?? 0) + 1;
    const after = Math.max(first, bucketOf(end)) + 1;
    changes[after] = (changes[after] ?? 0) - 1;
  }
  const counts = new Uint32Array(buckets);
  let running = 0;
  for (let index = 0; index < buckets; index += 1) {
    running += changes[index] ?? 0;
    counts[index] = running;
  }
  return counts;
}

/** The area below `counts` in a box as wide as there are counts, and 100 high, which is `most` of them. A count that is
 * not zero is at least `least` high: a single one among thousands stays visible. */
export function areaPath(counts: Uint32Array, most: number, least: number): string {
  let path = "M0 100";
  counts.forEach((count, at) => (path += `V${count === 0 ? 100 : 100 - Math.max(least, (count / most) * 100)}H${at + 1}`));
  return `${path}V100Z`;
}

/** The mean of the two middle values for an even number; 0 if empty. */
export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  if (sorted.length % 2) return sorted[half] ?? 0;
  return sorted.length ? ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2 : 0;
}
