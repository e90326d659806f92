// How long a run waits for workers: in words, and as a band of its timeline.
import { formatDuration, parseDuration } from "./durations";
import type { Halt, Pause, QueueTimes } from "./records";
import { msOrNull, toMs } from "./times";

/** Shorter waits are neither named nor drawn. */
const SHOWN_FROM_MS = 1_000;

/** All waits, the one under way included. */
export function queuedMs(run: QueueTimes, now: number): number {
  const since = msOrNull(run.ready_at);
  return (parseDuration(run.queued) ?? 0) + (since === null ? 0 : Math.max(0, now - since));
}

/** `waited 2m 29s for a worker`; empty for a short time. */
export function queueText(run: QueueTimes, now: number): string {
  const waited = queuedMs(run, now);
  if (waited < SHOWN_FROM_MS) return "";
  const verb = run.ready_at === null ? "waited" : "waiting";
  return `${verb} ${formatDuration(waited)} for a worker`;
}

/** Before the pauses of a run, its wait for the first worker; and the time up to `loadedFrom`, the first step that is
 * loaded, if earlier ones are not. */
export function haltsOf(run: QueueTimes, pauses: readonly Pause[], loadedFrom: string | null = null): Halt[] {
  const { queued_at, started_at } = run;
  const halts: Halt[] = [];
  if (queued_at !== null && started_at !== null && toMs(started_at) - toMs(queued_at) >= SHOWN_FROM_MS) {
    halts.push({ kind: "queue", started_at: queued_at, finished_at: started_at, reason: null });
  }
  if (loadedFrom !== null && started_at !== null) {
    halts.push({ kind: "loading", started_at, finished_at: loadedFrom, reason: null });
  }
  return [...halts, ...pauses.map((pause): Halt => ({ ...pause, kind: "paused" }))];
}
