// The step in the page's address: of this run, of an expanded child run, or discarded by a retry of this run.
import { useMemo } from "preact/hooks";
import type { ForgottenStep, ForgottenSteps } from "../../state/forgotten-steps";
import type { ChildRuns } from "../../state/run-children";
import type { RunStore } from "../../state/run-store";
import type { Selection } from "./inspector";
import { view } from "./view";

export function useSelection(store: RunStore, childRuns: ChildRuns, forgotten: ForgottenSteps): Selection | null {
  const { step, within } = view.value;
  const retrySeq = retryOf(within);
  const steps =
    retrySeq !== null
      ? forgotten.steps.value
      : within === null
        ? store.steps.value
        : (childRuns.all.value.get(within)?.steps ?? null);
  return useMemo(() => {
    const row = steps?.find(
      (each) => each.step_id === step && (retrySeq === null || (each as ForgottenStep).retry_seq === retrySeq),
    );
    if (row === undefined) return null;
    return { runId: retrySeq !== null || within === null ? store.runId : within, row, retrySeq };
  }, [steps, step, within, store]);
}

/** The retry in `before:12`; otherwise null. */
function retryOf(within: string | null): number | null {
  const found = /^before:(\d+)$/.exec(within ?? "");
  return found === null ? null : Number(found[1]);
}

/** The key of its row. */
export function selectedKey(): string | null {
  const { step, within } = view.value;
  if (step === null) return null;
  return within === null ? step : `${within}:${step}`;
}
