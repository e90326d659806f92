// Loads the data for the comparison of two runs.
import { api } from "../../api/client";
import type { Paged, RunView, StepView, TimelineStepView, TimelineView, WholeRunView } from "../../api/types";
import { RawJson } from "../../model/json-text";
import { segmentsOf } from "../../model/step-rows";
import { buildScale, type TimeScale } from "../../model/time-scale";
import { toMs } from "../../model/times";
import { serverNow } from "../../state/clock";
import { useResource } from "../../state/resource";
import { RAW_FIELDS } from "../../state/run-store";

const STEPS = 2_000;

export interface Side {
  run: WholeRunView;
  steps: readonly TimelineStepView[];
}

export async function loadBoth(a: string, b: string | null, abort: AbortSignal): Promise<[Side, Side | null]> {
  const left = await loadSide(a, abort);
  const other = b ?? (await lastCompleted(left.run, abort));
  return [left, other === null ? null : await loadSide(other, abort)];
}

async function loadSide(runId: string, abort: AbortSignal): Promise<Side> {
  const path = `/runs/${encodeURIComponent(runId)}`;
  const [run, timeline] = await Promise.all([
    api.get<WholeRunView>(path, {}, { abort, raw: RAW_FIELDS }),
    api.get<TimelineView>(`${path}/timeline`, { size: String(STEPS) }, { abort }),
  ]);
  return { run, steps: timeline.rows };
}

async function lastCompleted(run: RunView, abort: AbortSignal): Promise<string | null> {
  const query = { workflow: run.workflow, status: "completed", order: "ended", size: "2" };
  const page = await api.get<Paged<RunView>>("/runs", query, { abort });
  return page.rows.find((each) => each.run_id !== run.run_id)?.run_id ?? null;
}

/** Both runs begin at zero, so that equal offsets have equal positions. */
export function sharedScale(a: Side, b: Side, width: number): TimeScale {
  const intervals = [a, b].flatMap(({ run, steps }) => {
    const begin = toMs(run.created_at);
    return steps.flatMap((step) =>
      segmentsOf(step).map((each) => ({
        start: each.start - begin,
        end: each.end === null ? null : each.end - begin,
        wait: each.shape !== "attempt",
      })),
    );
  });
  const ends = [a, b].map(
    ({ run }) => toMs(run.finished_at ?? new Date(serverNow()).toISOString()) - toMs(run.created_at),
  );
  return buildScale(intervals, [0, Math.max(...ends)], width, { folding: true, unfolded: new Set() });
}

type Texts = ReadonlyMap<string, string>;

/** The stored results of both runs, as far as a page of steps contains them. */
export function useOutputs(a: Side, b: Side): readonly [Texts, Texts] | null {
  const both = useResource((abort) => Promise.all([a, b].map((side) => outputsOf(side.run.run_id, abort))), [a, b]);
  const [left, right] = both.value ?? [];
  return left !== undefined && right !== undefined ? [left, right] : null;
}

async function outputsOf(runId: string, abort: AbortSignal): Promise<Texts> {
  const query = { payloads: "true", size: "200" };
  const page = await api.get<Paged<StepView>>(`/runs/${encodeURIComponent(runId)}/steps`, query, {
    abort,
    raw: RAW_FIELDS,
  });
  const ended = page.rows.filter((step) => step.status === "completed");
  return new Map(ended.map((step) => [step.step_id, step.output instanceof RawJson ? step.output.text : ""]));
}

export function isOther(outputs: readonly [Texts, Texts] | null, stepId: string): boolean {
  const left = outputs?.[0].get(stepId);
  const right = outputs?.[1].get(stepId);
  return left !== undefined && right !== undefined && left !== right;
}
