import type { QueueView, StatsMinuteView } from "../../api/types";
import { formatDuration, groupThousands } from "../../model/durations";
import { countsByStep, formatShare, type Totals } from "../../model/stats";
import { msOrNull, toMs } from "../../model/times";
import { Sparkline } from "../../ui/bars";
import { Icon } from "../../ui/icon";
import { Since } from "../../ui/time";

export const HOUR_MS = 3_600_000;
export const HOURS = 24;

/** The begin of the last 24 hours, rounded to hours so that repeated requests are equal. */
export function dayBefore(now: number): number {
  return Math.floor(now / HOUR_MS) * HOUR_MS - (HOURS - 1) * HOUR_MS;
}

export function byType(minutes: readonly StatsMinuteView[]): Map<string, StatsMinuteView[]> {
  const types = new Map<string, StatsMinuteView[]>();
  for (const minute of minutes) {
    const known = types.get(minute.workflow);
    if (known) known.push(minute);
    else types.set(minute.workflow, [minute]);
  }
  return types;
}

interface StartsProps {
  readonly minutes: readonly StatsMinuteView[];
  readonly from: number;
}

export function StartsOfDay({ minutes, from }: StartsProps) {
  const counts = countsByStep(minutes, from, HOUR_MS, HOURS, (each) => each.started, toMs);
  const most = Math.max(...counts);
  const sum = counts.reduce((total, count) => total + count, 0);
  return <Sparkline values={counts} label={`${sum} started in 24 hours, at most ${most} per hour`} width={96} />;
}

export function FailedShare({ totals }: { readonly totals: Totals }) {
  if (totals.failedShare === null) return <span class="dim none">–</span>;
  return (
    <span class="nowrap" title={`${totals.failed} of ${totals.failed + totals.completed} ended runs`}>
      {totals.failed > 0 && (
        <span class="state-word" data-state="failed">
          <Icon name="cross" />
        </span>
      )}
      {formatShare(totals.failedShare)}
    </span>
  );
}

export function Took({ ms }: { readonly ms: number | null }) {
  return ms === null ? <span class="dim none">–</span> : <span class="nowrap">{formatDuration(ms)}</span>;
}

/** How many runs wait, since when, and why. */
export function QueueCell({ queues }: { readonly queues: readonly QueueView[] }) {
  const waiting = queues.reduce((sum, each) => sum + each.waiting, 0);
  if (waiting === 0) return <span class="dim none">–</span>;
  const oldest = queues.map((each) => msOrNull(each.oldest_waiting_since) ?? Infinity);
  const since = Math.min(...oldest);
  const reason = queues.find((each) => each.limit_reason !== null)?.limit_reason;
  const unserved = queues.every((each) => each.workers === 0);
  return (
    <span>
      {groupThousands(waiting)}
      {Number.isFinite(since) && (
        <span class="dim">
          {" "}
          oldest <Since ms={since} />
        </span>
      )}
      {(unserved || reason) && (
        <span class="state-word" data-state={unserved ? "failed" : "waiting"}>
          {" "}
          {unserved ? "no worker" : reason}
        </span>
      )}
    </span>
  );
}
