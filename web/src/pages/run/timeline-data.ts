// What a timeline is made of: the steps that it shows, and the stretches without any.
import { useMemo } from "preact/hooks";
import type { TimelineStepView, WholeRunView } from "../../api/types";
import { haltsOf } from "../../model/queue-times";
import type { Halt } from "../../model/records";
import type { DiscardedSteps, RowView } from "../../model/step-rows";
import { serverNow } from "../../state/clock";
import type { ChildRuns } from "../../state/run-children";
import type { RunStore } from "../../state/run-store";
import { view } from "./view";

/** Made again only if they change, since the scale is made of them. */
export function useHalts(store: RunStore, run: WholeRunView): readonly Halt[] {
  const pauses = store.pauses.value;
  const first = store.complete.value ? null : (store.steps.value[0]?.created_at ?? null);
  return useMemo(() => haltsOf(run, pauses, first), [pauses, run.queued_at, run.started_at, first]);
}

export function useRowsView(
  store: RunStore,
  childRuns: ChildRuns,
  discarded: readonly DiscardedSteps[],
): RowView & { steps: readonly TimelineStepView[] } {
  const { toggled, text, failed, slow, kind } = view.value;
  const all = store.steps.value;
  const children = childRuns.all.value;
  const opened = [...toggled].join("\n");
  return useMemo(
    () => ({
      runId: store.runId,
      now: serverNow(),
      partial: !store.complete.value,
      toggled,
      discarded,
      steps:
        kind === "" && all.some((step) => step.kind === "patch") ? all.filter((step) => step.kind !== "patch") : all,
      filter: { text, failed, slowest: slow, kinds: kind === "" || kind === "all" ? [] : [kind], marks: true },
      children: new Map(
        [...children].map(([id, child]) => [id, { steps: child.steps, more: child.older, loading: child.loading }]),
      ),
    }),
    [store, all, opened, text, failed, slow, kind, children, discarded, store.complete.value],
  );
}
