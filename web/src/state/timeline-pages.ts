// Pages of a timeline, which are read at different times, put together.
import type { EventView, PauseView, TimelineStepView, TimelineView } from "../api/types";

/** What an event says of a row, kept when a page that was read before it comes in after it. */
export function moving(row: TimelineStepView): Partial<TimelineStepView> {
  const { status, begun_seq, seq, attempt, started_at, finished_at, retry_at, wake_at, attempts, error } = row;
  return { status, begun_seq, seq, attempt, started_at, finished_at, retry_at, wake_at, attempts, error };
}

export function byBegin(a: TimelineStepView, b: TimelineStepView): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.begun_seq - b.begun_seq;
}

/** The newest event that the newest page of steps shows; all before it were there when it was read. */
export function knownSeq(newest: TimelineView): number {
  return newest.rows.reduce((most, row) => Math.max(most, row.begun_seq, row.seq), 0);
}

/** The old ones if they are the same: nothing is drawn anew. */
export function kept(old: readonly PauseView[], fresh: readonly PauseView[]): readonly PauseView[] {
  return JSON.stringify(old) === JSON.stringify(fresh) ? old : fresh;
}

/** What is read after an event of the run as a whole. */
export function tellsPause(event: EventView): boolean {
  return event.kind === "run_paused" || event.kind === "run_resumed";
}

/** A moment in which the page has nothing else to do. */
export function idle(): Promise<void> {
  return new Promise((resolve) => {
    if (document.hidden || typeof requestIdleCallback === "undefined") setTimeout(resolve, 0);
    else requestIdleCallback(() => resolve(), { timeout: 100 });
  });
}

/** Where the newest page ends, if steps around another one are here too. */
export function newestGap(rows: ReadonlyMap<string, TimelineStepView>, newest: number): number | null {
  const begun = [...rows.values()].map((row) => row.begun_seq).sort((a, b) => b - a);
  return begun[newest - 1] ?? null;
}
