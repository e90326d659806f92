// Marks for the axis of a timeline.
import type { Retry, TimelineStep } from "./records";
import { msOrNull, toMs } from "./times";

export interface AxisMark {
  readonly ms: number;
  readonly kind: "patch" | "retry" | "worker";
  readonly label: string;
}

/** Patches, changes of the worker, and retries of the run. Steps are in order. */
export function axisMarks(steps: readonly TimelineStep[], retries: readonly Retry[] = []): AxisMark[] {
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
  for (const retry of retries) marks.push({ ms: toMs(retry.retried_at), kind: "retry", label: "the run was retried" });
  return marks;
}
