// What only the events of a run show: steps that a retry of the run discarded, and marks for the axis.
import type { StepKind, StepStatus, TimelineStep } from "./records";
import { msOrNull } from "./times";

/** The fields of an event (docs/reference/events.md) that are needed here. */
export interface HistoryEvent {
  readonly kind: string;
  readonly seq?: number;
  readonly at?: string;
  readonly step?: string;
  readonly name?: string;
  readonly attempt?: number;
  readonly until?: string;
  readonly child_run_id?: string;
  readonly error?: unknown;
}

const KINDS: readonly (readonly [string, StepKind])[] = [
  ["step_", "function"],
  ["sleep_", "sleep"],
  ["signal_", "signal"],
  ["child_", "child"],
  ["race_", "race"],
  ["patched", "patch"],
];
const ENDS: Record<string, StepStatus> = {
  step_completed: "completed",
  step_failed: "failed",
  // The failure that ended the run has this event once the run was retried.
  step_retrying: "failed",
  sleep_completed: "completed",
  signal_received: "completed",
  signal_timed_out: "failed",
  child_completed: "completed",
  child_failed: "failed",
  race_decided: "completed",
  patched: "completed",
};

/** Steps that are in the events but no longer in the run, because a retry of the run discarded them. */
export function forgottenSteps(events: readonly HistoryEvent[], steps: readonly TimelineStep[]): TimelineStep[] {
  const known = new Set(steps.map((step) => step.step_id));
  const found = new Map<string, TimelineStep>();
  for (const event of events) {
    const kind = KINDS.find(([prefix]) => event.kind.startsWith(prefix))?.[1];
    if (!event.step || !event.at || !kind || known.has(event.step)) continue;
    const ended = ENDS[event.kind];
    const before = found.get(event.step) ?? blank(event, kind);
    found.set(event.step, {
      ...before,
      seq: event.seq ?? before.seq,
      attempt: event.attempt ?? before.attempt,
      status: ended ?? before.status,
      finished_at: ended ? event.at : before.finished_at,
      error: errorLine(event.error) ?? before.error,
      child_run_id: event.child_run_id ?? before.child_run_id,
    });
  }
  return [...found.values()];
}

function blank(event: HistoryEvent, kind: StepKind): TimelineStep {
  return {
    step_id: event.step ?? "",
    name: event.name ?? event.step ?? "",
    kind,
    status: "abandoned",
    begun_seq: event.seq ?? 0,
    seq: event.seq ?? 0,
    attempt: 1,
    created_at: event.at ?? "",
    started_at: event.at ?? null,
    finished_at: event.at ?? null,
    retry_at: null,
    wake_at: null,
    attempts: [],
    error: null,
    child_run_id: null,
    parent_step_id: null,
    parallel_group: null,
    worker_id: null,
  };
}

function errorLine(error: unknown): string | null {
  if (typeof error === "string") return error.split("\n")[0] ?? null;
  if (error === null || typeof error !== "object" || !("text" in error)) return null;
  return typeof error.text === "string" ? (error.text.split("\n")[0] ?? null) : null;
}

export interface AxisMark {
  readonly ms: number;
  readonly kind: "patch" | "retry" | "worker";
  readonly label: string;
}

/** Patches, changes of the worker, and retries of the run. Steps are in order. */
export function axisMarks(steps: readonly TimelineStep[], forgotten: readonly TimelineStep[] = []): AxisMark[] {
  const marks: AxisMark[] = [];
  const mark = (step: TimelineStep, kind: AxisMark["kind"], label: string): void => {
    const ms = msOrNull(step.started_at) ?? msOrNull(step.created_at);
    if (ms !== null) marks.push({ ms, kind, label });
  };
  let worker = "";
  for (const step of steps) {
    if (step.kind === "patch") mark(step, "patch", `changed: ${step.name}`);
    if (!step.worker_id || step.kind !== "function") continue;
    if (worker && worker !== step.worker_id) mark(step, "worker", `${worker}, then ${step.worker_id}`);
    worker = step.worker_id;
  }
  const lost = forgotten.reduce((last, step) => Math.max(last, msOrNull(step.finished_at) ?? 0), 0);
  const next = lost ? steps.find((step) => (msOrNull(step.created_at) ?? 0) >= lost) : undefined;
  if (next) marks.push({ ms: msOrNull(next.created_at) ?? 0, kind: "retry", label: "the run was retried" });
  return marks;
}
