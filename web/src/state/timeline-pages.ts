// Merges pages of a timeline that were read at different times.
import type { EventView, TimelineStepView, TimelineView, WholeRunView } from "../api/types";
import { isEnded } from "../model/statuses";

/** The columns that events change, kept when a page that was read before the event arrives after it. */
export function moving(row: TimelineStepView): Partial<TimelineStepView> {
  const { status, begun_seq, seq, attempt, started_at, finished_at, retry_at, wake_at, attempts, error } = row;
  return { status, begun_seq, seq, attempt, started_at, finished_at, retry_at, wake_at, attempts, error };
}

export function byBegin(a: TimelineStepView, b: TimelineStepView): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.begun_seq - b.begun_seq;
}

/** The newest event that is included in the newest page of steps; all earlier ones are included too. */
export function knownSeq(newest: TimelineView): number {
  return newest.rows.reduce((most, row) => Math.max(most, row.begun_seq, row.seq), 0);
}

/** Returns the old list if it is equal, so that nothing is drawn again. */
export function kept<T>(old: readonly T[], fresh: readonly T[]): readonly T[] {
  return JSON.stringify(old) === JSON.stringify(fresh) ? old : fresh;
}

/** Whether a retry has reopened the run since it was read before; it may have ended again. */
export function wasReopened(before: WholeRunView, run: WholeRunView): boolean {
  if (!isEnded(before.status)) return false;
  return !isEnded(run.status) || (before.finished_at !== null && before.finished_at !== run.finished_at);
}

/** Whether the event changes the pauses of the run. */
export function tellsPause(event: EventView): boolean {
  return event.kind === "run_paused" || event.kind === "run_resumed";
}

/** Resolves when the page is idle. */
export function idle(): Promise<void> {
  return new Promise((resolve) => {
    if (document.hidden || typeof requestIdleCallback === "undefined") setTimeout(resolve, 0);
    else requestIdleCallback(() => resolve(), { timeout: 100 });
  });
}

/** Where the newest page ends, if steps around another one are loaded too. */
export function newestGap(rows: ReadonlyMap<string, TimelineStepView>, newest: number): number | null {
  const begun = [...rows.values()].map((row) => row.begun_seq).sort((a, b) => b - a);
  return begun[newest - 1] ?? null;
}
