// The segments that are drawn for a step: attempts, and the waits between and around them.
import type { Interval } from "./intervals";
import type { Halt, TimelineStep } from "./records";
import { type StateName, stateOfStep } from "./statuses";
import { msOrNull, toMs } from "./times";
import type { ScaleInterval } from "./time-scale";

export type SegmentShape = "attempt" | "backoff" | "sleep" | "signal" | "paused" | "child" | "queue" | "patch";

/** `cross`: failed. `next`: the time of the next attempt. `arrival`, `timeout`: of a signal. `won`, `lost`: a race. */
export type SegmentMark = "cross" | "next" | "arrival" | "timeout" | "won" | "lost";

/** `end` null: still open. `until`: the stored time at which a wait ends at the latest. */
export interface Segment {
  readonly shape: SegmentShape;
  readonly state: StateName;
  readonly start: number;
  readonly end: number | null;
  readonly mark?: SegmentMark;
  readonly until?: number;
  /** The number of the attempt. */
  readonly attempt?: number;
  /** The previous and the current worker, if they differ. */
  readonly workers?: readonly [string, string];
}

export interface StepTimes {
  readonly created: number;
  readonly finished: number | null;
  readonly state: StateName;
}

// Steps are replaced when they change, so cached values stay valid for the life of the object.
const times = new WeakMap<TimelineStep, StepTimes>();
const drawn = new WeakMap<TimelineStep, readonly Segment[]>();

export function timesOf(step: TimelineStep): StepTimes {
  let found = times.get(step);
  if (!found) {
    found = { created: toMs(step.created_at), finished: msOrNull(step.finished_at), state: stateOfStep(step) };
    times.set(step, found);
  }
  return found;
}

/** From its creation, including waits between attempts, to its end or to now. */
export function tookOf(step: TimelineStep, now: number): number {
  const { created, finished } = timesOf(step);
  return Math.max(0, (finished ?? now) - created);
}

/** How often it was begun: a step that waits for attempt 3 was tried twice. */
export function attemptsOf(step: TimelineStep): number {
  return step.status === "pending" ? step.attempt - 1 : step.attempt;
}

export function segmentsOf(step: TimelineStep): readonly Segment[] {
  let found = drawn.get(step);
  if (!found) {
    found = draw(step);
    drawn.set(step, found);
  }
  return found;
}

function draw(step: TimelineStep): Segment[] {
  const { created, finished, state } = timesOf(step);
  const until = msOrNull(step.wake_at);
  if (step.kind === "patch" || step.kind === "race") {
    return step.kind === "patch" ? [{ shape: "patch", state, start: created, end: created }] : [];
  }
  if (step.kind === "function") return attemptSegments(step);
  const mark = waitMark(step);
  return [
    {
      shape: step.kind,
      state,
      start: msOrNull(step.started_at) ?? created,
      end: finished,
      ...(mark ? { mark } : {}),
      ...(until === null ? {} : { until }),
    },
  ];
}

function waitMark(step: TimelineStep): SegmentMark | null {
  if (step.status === "abandoned") return "lost";
  if (step.kind !== "signal") return step.status === "failed" ? "cross" : null;
  return step.status === "completed" ? "arrival" : step.status === "failed" ? "timeout" : null;
}

function attemptSegments(step: TimelineStep): Segment[] {
  const segments: Segment[] = [];
  const { created, finished, state } = timesOf(step);
  const started = msOrNull(step.started_at);
  // The number of the oldest stored attempt: at most 20 are stored.
  let number = Math.max(1, step.attempt - step.attempts.length);
  let last: number | null = null;
  let worker: string | null = null;
  const taken = (by: string | null | undefined) => {
    const before = worker;
    worker = by ?? worker;
    return before !== null && worker !== null && before !== worker ? { workers: [before, worker] as const } : {};
  };
  for (const attempt of step.attempts) {
    const end = toMs(attempt.finished_at);
    const start = msOrNull(attempt.started_at) ?? last ?? created;
    if (last !== null && start > last) segments.push({ shape: "backoff", state: "retrying", start: last, end: start });
    const by = taken(attempt.worker_id);
    segments.push({ shape: "attempt", state: "failed", start, end, mark: "cross", attempt: number, ...by });
    last = end;
    number += 1;
  }
  const lastBegan = step.attempts.at(-1)?.started_at;
  // A step that waits for its next attempt still has the begin of the last one.
  const begun = started !== null && (step.attempts.length === 0 || lastBegan !== step.started_at);
  if (step.status === "pending" || !begun) {
    segments.push(waitingSegment(step, last, created, finished));
    return segments;
  }
  if (last !== null && started > last) {
    segments.push({ shape: "backoff", state: "retrying", start: last, end: started });
  }
  const mark = step.status === "failed" ? "cross" : step.status === "abandoned" ? "lost" : null;
  segments.push({
    shape: "attempt",
    state,
    start: started,
    end: finished,
    attempt: step.attempt,
    ...(mark ? { mark } : {}),
    ...taken(step.worker_id),
  });
  return segments;
}

function waitingSegment(step: TimelineStep, last: number | null, created: number, finished: number | null): Segment {
  const retry = msOrNull(step.retry_at);
  const start = last ?? created;
  if (last === null) return { shape: "queue", state: "pending", start, end: finished };
  if (retry === null) return { shape: "backoff", state: "abandoned", start, end: finished, mark: "lost" };
  return { shape: "backoff", state: "retrying", start, end: null, until: retry, mark: "next", attempt: step.attempt };
}

const WAITS: ReadonlySet<SegmentShape> = new Set(["backoff", "sleep", "signal", "child", "paused", "queue"]);

/** In these stretches no step begins. */
export function haltSegments(halts: readonly Halt[]): Segment[] {
  return halts.map(({ kind, started_at, finished_at }) => ({
    shape: kind === "loading" ? "queue" : kind,
    state: kind === "paused" ? "paused" : "pending",
    start: toMs(started_at),
    end: msOrNull(finished_at),
  }));
}

/** The intervals that determine the scale. */
export function scaleIntervals(steps: Iterable<TimelineStep>, halts: readonly Halt[] = []): ScaleInterval[] {
  const intervals: ScaleInterval[] = haltSegments(halts).map(({ start, end }) => ({ start, end, wait: true }));
  for (const step of steps) {
    for (const { shape, start, end } of segmentsOf(step)) intervals.push({ start, end, wait: WAITS.has(shape) });
  }
  return intervals;
}

interface KnownIntervals {
  readonly now: number;
  readonly intervals: readonly Interval[];
}

// A row of thousands of steps needs them for its strip, its position and its text.
const intervalsKnown = new WeakMap<readonly TimelineStep[], KnownIntervals>();

/** The interval of each step, for density strips and combined bars. */
export function stepIntervals(steps: readonly TimelineStep[], now: number): readonly Interval[] {
  const known = intervalsKnown.get(steps);
  if (known?.now === now) return known.intervals;
  const intervals = steps.map((step) => {
    const { created, finished } = timesOf(step);
    return { start: created, end: Math.max(created, finished ?? now) };
  });
  intervalsKnown.set(steps, { now, intervals });
  return intervals;
}
