import type { StatsMinuteView } from "../../api/types";
import { countsByStep } from "../../model/stats";
import { formatTime, toMs } from "../../model/times";
import type { Bar } from "../../ui/bars";
import { surroundings } from "../../ui/surroundings";

/** The runs that ended in each hour, by status. */
export function hourBars(minutes: readonly StatsMinuteView[], from: number, stepMs: number, steps: number): Bar[] {
  const counts = (of: (each: StatsMinuteView) => number): number[] =>
    countsByStep(minutes, from, stepMs, steps, (each) => of(each as StatsMinuteView), toMs);
  const completed = counts((each) => each.completed);
  const failed = counts((each) => each.failed);
  const cancelled = counts((each) => each.cancelled);
  return completed.map((done, index) => {
    const [wrong, stopped] = [failed[index] ?? 0, cancelled[index] ?? 0];
    const at = formatTime(from + index * stepMs, surroundings.zone.value, "datetime");
    return {
      key: String(index),
      label: `${at}: ${done} completed, ${wrong} failed, ${stopped} cancelled`,
      parts: [
        { state: "completed", value: done },
        { state: "failed", value: wrong },
        { state: "cancelled", value: stopped },
      ],
    };
  });
}
