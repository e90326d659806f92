// The parts of runs and steps that the model needs. The views of the API match them without being imported.

export type RunStatus = "pending" | "running" | "sleeping" | "paused" | "completed" | "failed" | "cancelled";
export type WaitReason = "time" | "signal" | "child" | "retry";
export type StepStatus = "pending" | "running" | "completed" | "failed" | "abandoned";
export type StepKind = "function" | "sleep" | "signal" | "child" | "race" | "patch";

export interface RunStanding {
  readonly status: RunStatus;
  readonly wait_reason?: WaitReason | null;
  readonly awaits_signal?: number;
  readonly retrying_steps?: number;
  readonly problem?: unknown;
}

export interface TimelineAttempt {
  readonly started_at: string | null;
  readonly finished_at: string;
  readonly worker_id?: string | null;
}

/** `PauseView` of the API. */
export interface Pause {
  readonly started_at: string;
  readonly finished_at: string | null;
  readonly reason: string | null;
}

/** A stretch of the run without bars: it is paused, or waits for its first worker, or its steps are not loaded yet. */
export interface Halt extends Pause {
  readonly kind: "paused" | "queue" | "loading";
}

/** What the API says about the time in which a run waits for workers. */
export interface QueueTimes {
  readonly ready_at: string | null;
  readonly queued_at: string | null;
  /** A duration: all waits that are over. */
  readonly queued: string;
  readonly started_at: string | null;
}

/** `TimelineRetryView` of the API. */
export interface Retry {
  readonly retry_seq: number;
  readonly retried_at: string;
  readonly steps: number;
}

/** `TimelineStepView` of the API. */
export interface TimelineStep {
  readonly step_id: string;
  readonly name: string;
  readonly kind: StepKind;
  readonly status: StepStatus;
  readonly begun_seq: number;
  readonly seq: number;
  readonly attempt: number;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly retry_at: string | null;
  readonly wake_at: string | null;
  readonly attempts: readonly TimelineAttempt[];
  readonly error: string | null;
  readonly child_run_id: string | null;
  readonly parent_step_id: string | null;
  readonly parallel_group: string | null;
  readonly worker_id: string | null;
}
