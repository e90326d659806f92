// Children that are open in place: their steps are read while they are.
import type { TimelineStepView } from "../../api/types";
import type { Row } from "../../model/step-rows";
import { isEnded } from "../../model/statuses";
import type { ChildRuns, ChildSteps } from "../../state/run-children";

/** Their steps, for the scale. */
export function openChildren(
  rows: readonly Row[],
  childRuns: ChildRuns,
  all: ReadonlyMap<string, ChildSteps>,
): readonly TimelineStepView[] {
  const open = new Map<string, boolean>();
  for (const row of rows)
    if (row.kind === "child" && row.expanded === true) open.set(row.childRunId, !isEnded(row.state));
  queueMicrotask(() => childRuns.show(open)); // it changes what is being rendered
  return [...open.keys()].flatMap((runId) => all.get(runId)?.steps ?? []);
}
