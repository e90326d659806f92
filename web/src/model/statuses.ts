// The ten states, which differ in word, icon and colour.
import type { RunStanding, RunStatus, StepKind, StepStatus } from "./records";

export type StateName =
  | "pending"
  | "running"
  | "sleeping"
  | "waiting"
  | "retrying"
  | "paused"
  | "completed"
  | "failed"
  | "cancelled"
  | "abandoned";

export type IconName =
  | "circle-dashed"
  | "play"
  | "moon"
  | "envelope"
  | "refresh"
  | "pause"
  | "check"
  | "cross"
  | "stop"
  | "minus"
  | "search"
  | "copy"
  | "chevron-right"
  | "chevron-down"
  | "menu"
  | "external"
  | "flag"
  | "fork"
  | "clock"
  | "child"
  | "warning"
  | "plus"
  | "trash"
  | "key";

export const STATES: readonly StateName[] = [
  "pending",
  "running",
  "sleeping",
  "waiting",
  "retrying",
  "paused",
  "completed",
  "failed",
  "cancelled",
  "abandoned",
];

/** A sleeping run is shown by what it waits for. One that also executes steps is running: see `failingHint`. */
export function stateOfRun(run: RunStanding): StateName {
  if (run.status !== "sleeping") return run.status;
  if (run.wait_reason === "retry") return "retrying";
  // A race of a signal and a sleep has the reason `time`, but still waits for a person.
  if (run.wait_reason === "signal" || run.wait_reason === "child" || (run.awaits_signal ?? 0) > 0) return "waiting";
  return "sleeping";
}

/** `1 failing step`, shown beside the badge in lists and headers; empty if no step is being retried. */
export function failingHint(run: RunStanding): string {
  const steps = isEnded(run.status) ? 0 : (run.retrying_steps ?? 0);
  return steps ? `${steps} failing step${steps === 1 ? "" : "s"}` : "";
}

export interface StepStanding {
  readonly kind: StepKind;
  readonly status: StepStatus;
  readonly attempt: number;
  readonly retry_at?: string | null;
}

export function stateOfStep(step: StepStanding): StateName {
  if (step.status === "pending") return step.retry_at ? "retrying" : "pending";
  if (step.status !== "running") return step.status;
  if (step.kind === "sleep") return "sleeping";
  return step.kind === "signal" || step.kind === "child" ? "waiting" : "running";
}

export function wordOf(state: StateName): string {
  return state;
}

const ICONS: Record<StateName, IconName> = {
  pending: "circle-dashed",
  running: "play",
  sleeping: "moon",
  waiting: "envelope",
  retrying: "refresh",
  paused: "pause",
  completed: "check",
  failed: "cross",
  cancelled: "stop",
  abandoned: "minus",
};

/** `child`: it waits for a child run, not for a person. */
export function iconOf(state: StateName, child = false): IconName {
  return child && state === "waiting" ? "child" : ICONS[state];
}

/** Whether a run waits for a child and not for a signal. */
export function awaitsChild(run: RunStanding): boolean {
  return run.status === "sleeping" && run.wait_reason === "child" && (run.awaits_signal ?? 0) === 0;
}

export function isEnded(status: RunStatus | StepStatus | StateName): boolean {
  return status === "completed" || status === "failed" || status === "cancelled" || status === "abandoned";
}
