// Expanded child runs: loads their steps while they are expanded.
import type { TimelineStepView } from "../../api/types";
import type { Row } from "../../model/step-rows";
import { isEnded } from "../../model/statuses";
import type { ChildRuns, ChildSteps } from "../../state/run-children";

/** The steps of the expanded children, for the scale. */
export function openChildren(
  rows: readonly Row[],
  childRuns: ChildRuns,
  all: ReadonlyMap<string, ChildSteps>,
): readonly TimelineStepView[] {
  const open = new Map<string, boolean>();
  for (const row of rows)
    if (row.kind === "child" && row.expanded === true) open.set(row.childRunId, !isEnded(row.state));
  queueMicrotask(() => childRuns.show(open)); // deferred, as it changes state during a render
  return [...open.keys()].flatMap((runId) => all.get(runId)?.steps ?? []);
}
