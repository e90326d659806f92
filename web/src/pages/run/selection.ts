// The step in the page's address: of this run, or of an expanded child run.
import { useMemo } from "preact/hooks";
import type { ChildRuns } from "../../state/run-children";
import type { RunStore } from "../../state/run-store";
import type { Selection } from "./inspector";
import { view } from "./view";

export function useSelection(store: RunStore, childRuns: ChildRuns): Selection | null {
  const { step, within } = view.value;
  const steps = within === null ? store.steps.value : (childRuns.all.value.get(within)?.steps ?? null);
  return useMemo(() => {
    const row = steps?.find((each) => each.step_id === step);
    return row === undefined ? null : { runId: within ?? store.runId, row };
  }, [steps, step, within, store]);
}

/** The key of its row. */
export function selectedKey(): string | null {
  const { step, within } = view.value;
  if (step === null) return null;
  return within === null ? step : `${within}:${step}`;
}
