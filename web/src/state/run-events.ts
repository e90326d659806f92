// Applies events of a run to its timeline. Pure: the store decides when to draw.
import type { EventView, TimelineStepView } from "../api/types";

type Kind = TimelineStepView["kind"];

const BEGINS: Readonly<Record<string, Kind>> = {
  step_started: "function",
  sleep_started: "sleep",
  signal_awaited: "signal",
  child_started: "child",
  race_decided: "race",
  patched: "patch",
};

const ENDS: Readonly<Record<string, "completed" | "failed">> = {
  step_completed: "completed",
  sleep_completed: "completed",
  signal_received: "completed",
  child_completed: "completed",
  step_failed: "failed",
  signal_timed_out: "failed",
  child_failed: "failed",
};

/** Events that lack columns of the row: its group, its worker, whether it lost a race. */
export function needsColumns(event: EventView): boolean {
  return event.kind in BEGINS || event.kind === "signal_rejected";
}

/** The row after the event, or null if the event is not about a step. Returns the same object if the row already
 * includes the event (its page was read after it happened). */
export function applyEvent(row: TimelineStepView | undefined, event: EventView): TimelineStepView | null {
  if (event.step == null) return null;
  const begins = BEGINS[event.kind];
  if (begins !== undefined) return begin(row, event, begins);
  if (row === undefined) return null;
  if (isKnown(row, event)) return row;
  const ends = ENDS[event.kind];
  if (ends !== undefined) {
    const error = ends === "failed" ? firstLine(event) : null;
    return { ...row, status: ends, seq: event.seq, finished_at: event.at, retry_at: null, error };
  }
  switch (event.kind) {
    case "step_retrying":
      return {
        ...stopped(row, event),
        attempt: (event.attempt ?? row.attempt) + 1,
        retry_at: event.until ?? null,
      };
    case "step_lost":
      return stopped(row, event);
    case "step_woken":
      return row.kind === "sleep" ? { ...row, wake_at: event.at } : { ...row, retry_at: event.at };
    default:
      return row;
  }
}

function begin(row: TimelineStepView | undefined, event: EventView, kind: Kind): TimelineStepView {
  if (row !== undefined && isKnown(row, event)) return row;
  const atOnce = kind === "race" || kind === "patch";
  const fresh: TimelineStepView = row ?? {
    step_id: event.step ?? "",
    name: event.name ?? event.step ?? "",
    kind,
    status: "running",
    begun_seq: event.seq,
    seq: 0,
    attempt: 1,
    created_at: event.at,
    started_at: event.at,
    finished_at: null,
    retry_at: null,
    wake_at: null,
    attempts: [],
    error: null,
    child_run_id: null,
    parent_step_id: null,
    parallel_group: null,
    worker_id: null,
  };
  return {
    ...fresh,
    status: atOnce ? "completed" : "running",
    begun_seq: event.seq,
    seq: atOnce ? event.seq : 0,
    attempt: event.attempt ?? fresh.attempt,
    started_at: event.at,
    finished_at: atOnce ? event.at : null,
    retry_at: null,
    wake_at: kind === "sleep" || kind === "signal" ? (event.until ?? fresh.wake_at) : fresh.wake_at,
    child_run_id: event.child_run_id ?? fresh.child_run_id,
  };
}

/** Seqs only grow: a row with a begin or a result at or after this one was read later. */
function isKnown(row: TimelineStepView, event: EventView): boolean {
  return Math.max(row.begun_seq, row.seq) >= event.seq || lastAttemptEnd(row) >= event.at;
}

function lastAttemptEnd(row: TimelineStepView): string {
  return row.attempts.at(-1)?.finished_at ?? "";
}

function stopped(row: TimelineStepView, event: EventView): TimelineStepView {
  const attempts = [...row.attempts, { started_at: row.started_at, finished_at: event.at, worker_id: row.worker_id }];
  return { ...row, status: "pending", attempts: attempts.slice(-20), error: null };
}

function firstLine(event: EventView): string | null {
  return event.error?.text.split("\n", 1)[0] ?? null;
}
