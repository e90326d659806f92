// Filters the steps of a timeline.
import type { StepKind, TimelineStep } from "./records";
import { tookOf } from "./segments";

/** Empty, false: all. `slowest`: the slowest 5 %. `marks` false: without `patch`. */
export interface StepFilter {
  readonly text: string;
  readonly failed: boolean;
  readonly slowest: boolean;
  readonly kinds: readonly StepKind[];
  readonly marks: boolean;
}

export const EVERY_STEP: StepFilter = { text: "", failed: false, slowest: false, kinds: [], marks: true };
const SLOWEST_SHARE = 0.05;

export function isEveryStep(filter: StepFilter): boolean {
  return !filter.text && !filter.failed && !filter.slowest && !filter.kinds.length && filter.marks;
}

/** Failed, or failed and being retried. */
export function hasFailed(step: TimelineStep): boolean {
  return step.status === "failed" || (step.status !== "completed" && step.error !== null) || step.retry_at !== null;
}

export function filterSteps(steps: readonly TimelineStep[], filter: StepFilter, now: number): readonly TimelineStep[] {
  if (isEveryStep(filter)) return steps;
  const text = filter.text.trim().toLowerCase();
  const slow = filter.slowest ? slowestFrom(steps, now) : 0;
  return steps.filter(
    (step) =>
      (filter.marks || step.kind !== "patch") &&
      (!filter.kinds.length || filter.kinds.includes(step.kind)) &&
      (!filter.failed || hasFailed(step) || step.attempts.length > 0) &&
      (!filter.slowest || (isTimed(step) && tookOf(step, now) >= slow)) &&
      (!text || step.step_id.toLowerCase().includes(text) || !!step.error?.toLowerCase().includes(text)),
  );
}

function isTimed(step: TimelineStep): boolean {
  return step.kind === "function" || step.kind === "child";
}

function slowestFrom(steps: readonly TimelineStep[], now: number): number {
  const took = Float64Array.from(steps.filter(isTimed), (step) => tookOf(step, now)).sort();
  const count = Math.max(1, Math.ceil(took.length * SLOWEST_SHARE));
  return took[took.length - count] ?? 0;
}

/** Ids of the failed steps, in timeline order: the targets of the key `!`. */
export function failuresIn(steps: readonly TimelineStep[]): string[] {
  return steps.filter(hasFailed).map((step) => step.step_id);
}
