// Which results a fork keeps: those that existed when the step was first begun. The same rule as the server's.
import type { TimelineStepView } from "../../api/types";

export interface ForkPlan {
  kept: readonly TimelineStepView[];
  again: readonly TimelineStepView[];
}

/** `from` empty: all results are kept. */
export function keptBefore(steps: readonly TimelineStepView[], from: string): ForkPlan {
  const first = steps.find((step) => step.step_id === from);
  const kept: TimelineStepView[] = [];
  const again: TimelineStepView[] = [];
  for (const step of steps) (isKept(step, first) ? kept : again).push(step);
  return { kept, again };
}

export function isKept(step: TimelineStepView, first: TimelineStepView | undefined): boolean {
  if (step.seq === 0 || step.status === "pending" || step.status === "running") return false;
  if (first === undefined) return true;
  if (step.step_id === first.step_id) return false;
  // for a retried step only the time of its first begin is known here
  if (first.attempts.length > 0) return step.finished_at !== null && step.finished_at <= first.created_at;
  return step.seq < first.begun_seq;
}
