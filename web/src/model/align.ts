// Aligns the steps of two runs.
import type { TimelineStep } from "./records";
import { timesOf, tookOf } from "./segments";
import { inOrder } from "./step-tree";

export interface AlignedStep {
  readonly stepId: string;
  readonly name: string;
  readonly a: TimelineStep | null;
  readonly b: TimelineStep | null;
  readonly tookA: number | null;
  readonly tookB: number | null;
  /** How much longer it took in the second run; null if it is in one run only. */
  readonly longer: number | null;
  /** Both exist and have the same state. The page compares outputs. */
  readonly same: boolean;
}

/** By step id, in the order of the first run; steps only in the second follow their predecessor there. */
export function alignSteps(a: readonly TimelineStep[], b: readonly TimelineStep[], now: number): AlignedStep[] {
  const left = inOrder(a);
  const right = inOrder(b);
  const leftIds = new Set(left.map((step) => step.step_id));
  const byId = new Map(right.map((step) => [step.step_id, step]));
  const after = new Map<string, TimelineStep[]>();
  let last = "";
  for (const step of right) {
    if (leftIds.has(step.step_id)) last = step.step_id;
    else after.set(last, [...(after.get(last) ?? []), step]);
  }
  const rows: AlignedStep[] = [];
  const only = (id: string) => {
    for (const step of after.get(id) ?? []) rows.push(aligned(null, step, now));
  };
  only("");
  for (const step of left) {
    rows.push(aligned(step, byId.get(step.step_id) ?? null, now));
    only(step.step_id);
  }
  return rows;
}

function aligned(a: TimelineStep | null, b: TimelineStep | null, now: number): AlignedStep {
  const step = (a ?? b) as TimelineStep;
  const tookA = a && tookOf(a, now);
  const tookB = b && tookOf(b, now);
  return {
    stepId: step.step_id,
    name: step.name,
    a,
    b,
    tookA,
    tookB,
    longer: tookA === null || tookB === null ? null : tookB - tookA,
    same: a !== null && b !== null && timesOf(a).state === timesOf(b).state,
  };
}
