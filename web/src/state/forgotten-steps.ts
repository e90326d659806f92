// Steps that retries of a run have discarded: loaded when the first of their groups is opened.
import { signal } from "@preact/signals";
import { api } from "../api/client";
import type { Paged, StepView, TimelineStepView } from "../api/types";

const PAGE_STEPS = 1_000;

/** A discarded step as the timeline draws it, and the retry that discarded it. */
export interface ForgottenStep extends TimelineStepView {
  readonly retry_seq: number;
}

export class ForgottenSteps {
  /** Null: not loaded. */
  readonly steps = signal<readonly ForgottenStep[] | null>(null);
  readonly failed = signal(false);
  private loadedUntil = 0;

  constructor(readonly runId: string) {}

  /** Loads them once, and again after another retry. `newest`: the seq of the latest retry. */
  show(newest: number): void {
    if (newest > this.loadedUntil) void this.load(newest);
  }

  /** Loads them again after a failure. */
  again(): void {
    void this.load(this.loadedUntil);
  }

  private async load(newest: number): Promise<void> {
    this.loadedUntil = newest;
    this.failed.value = false;
    try {
      const steps = await this.all();
      if (this.loadedUntil === newest) this.steps.value = steps;
    } catch {
      if (this.loadedUntil === newest) this.failed.value = true;
    }
  }

  /** The server keeps a few thousand at most. */
  private async all(): Promise<readonly ForgottenStep[]> {
    const steps: ForgottenStep[] = [];
    let token: string | null = null;
    do {
      const page: Paged<StepView> = await api.get<Paged<StepView>>(`/runs/${encodeURIComponent(this.runId)}/steps`, {
        forgotten: "1",
        size: PAGE_STEPS,
        token,
      });
      steps.push(...page.rows.map(rowOf));
      token = page.next;
    } while (token !== null);
    return steps;
  }
}

function rowOf(step: StepView): ForgottenStep {
  return {
    step_id: step.step_id,
    name: step.name,
    kind: step.kind,
    status: step.status,
    begun_seq: step.begun_seq,
    seq: step.seq,
    attempt: step.attempt,
    created_at: step.created_at,
    started_at: step.started_at,
    finished_at: step.finished_at,
    retry_at: step.retry_at,
    wake_at: step.wake_at,
    // those of earlier retries are drawn with their own steps
    attempts: step.attempts.filter((each) => !each.before_retry),
    error: step.error?.text.split("\n", 1)[0] ?? null,
    child_run_id: step.child_run_id,
    parent_step_id: step.parent_step_id,
    parallel_group: step.parallel_group,
    worker_id: step.worker_id,
    retry_seq: step.retry_seq ?? 0,
  };
}
