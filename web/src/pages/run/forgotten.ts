// The groups "before the retry": steps that retries of the run have discarded, loaded while a group is open.
import { useMemo } from "preact/hooks";
import { type DiscardedSteps, discardedKey } from "../../model/step-rows";
import { partsOf, toMs, type Zone } from "../../model/times";
import type { ForgottenStep, ForgottenSteps } from "../../state/forgotten-steps";
import { prefs } from "../../state/prefs";
import type { RunStore } from "../../state/run-store";
import { view } from "./view";

export function useDiscarded(store: RunStore, forgotten: ForgottenSteps): readonly DiscardedSteps[] {
  const retries = store.retries.value;
  const steps = forgotten.steps.value;
  const failed = forgotten.failed.value;
  const { toggled, within } = view.value;
  const zone = prefs.value.zone;
  const opened = retries.some(({ retry_seq: seq }) => toggled.has(discardedKey(seq)) || within === discardedKey(seq));
  // deferred, as it changes state during a render
  if (opened) queueMicrotask(() => forgotten.show(retries[0]?.retry_seq ?? 0));
  return useMemo(
    () =>
      retries.map((retry) => ({
        retrySeq: retry.retry_seq,
        label:
          retries.length === 1
            ? "before the retry"
            : `before retry ${clockText(toMs(retry.retried_at), zone)}`,
        count: retry.steps,
        steps: steps === null ? null : steps.filter((step) => step.retry_seq === retry.retry_seq),
        failed,
      })),
    [retries, steps, failed, zone],
  );
}

/** `14:02:11`: the head of the timeline names the zone. */
function clockText(ms: number, zone: Zone): string {
  const { hour, minute, second } = partsOf(ms, zone);
  return `${hour}:${minute}:${second}`;
}

/** The steps of the open groups, for the scale. */
export function openDiscarded(discarded: readonly DiscardedSteps[], toggled: ReadonlySet<string>): ForgottenStep[] {
  const open = discarded.filter((group) => toggled.has(discardedKey(group.retrySeq)));
  return open.flatMap((group) => (group.steps ?? []) as readonly ForgottenStep[]);
}
