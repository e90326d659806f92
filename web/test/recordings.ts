// Answers of a real server, as tests of the model read them; and steps that are made up.
import { readFileSync } from "node:fs";
import type { TimelineStep } from "../src/model/records";

export interface Recording {
  readonly rows: readonly TimelineStep[];
}

/** `npm test` runs in web/. */
export function recording(name: string): Recording {
  return JSON.parse(readFileSync(`test/recordings/${name}.json`, "utf8")) as Recording;
}

export const T0 = Date.UTC(2026, 10, 16, 12);

export function at(ms: number): string {
  return `${new Date(T0 + ms).toISOString().slice(0, -1)}000Z`;
}

export function step(change: Partial<TimelineStep> & { step_id: string }): TimelineStep {
  return {
    name: change.step_id.replace(/(\[[^\]]*\]|#\d+)$/, ""),
    kind: "function",
    status: "completed",
    begun_seq: 1,
    seq: 2,
    attempt: 1,
    created_at: at(0),
    started_at: at(0),
    finished_at: at(100),
    retry_at: null,
    wake_at: null,
    attempts: [],
    error: null,
    child_run_id: null,
    parent_step_id: null,
    parallel_group: null,
    worker_id: null,
    ...change,
  };
}

/** A map of so many items, ten begun each millisecond. */
export function manySteps(count: number, change?: (index: number) => Partial<TimelineStep>): TimelineStep[] {
  return Array.from({ length: count }, (_, index) =>
    step({
      step_id: `enrich[${index}]`,
      parallel_group: "enrich",
      begun_seq: index + 1,
      created_at: at(Math.floor(index / 10)),
      started_at: at(Math.floor(index / 10)),
      finished_at: at(Math.floor(index / 10) + 40),
      ...change?.(index),
    }),
  );
}
