// An overview strip of a long run: its activity over time, and the visible part.
import { useMemo } from "preact/hooks";
import type { TimelineStepView } from "../../api/types";
import { densityOf } from "../../model/intervals";
import { hasFailed, stepIntervals } from "../../model/step-rows";
import type { TimeScale } from "../../model/time-scale";
import { serverNow } from "../../state/clock";
import { setZoom } from "./view";
import { Density } from "./density";

const BUCKETS = 240;

interface OverviewProps {
  steps: readonly TimelineStepView[];
  scale: TimeScale;
  shown: TimeScale;
  begin: number;
}

export function Overview({ steps, scale, shown, begin }: OverviewProps) {
  const place = (ms: number) => scale.toX(ms);
  const [all, failed] = useMemo(() => {
    const now = serverNow();
    const failures = steps.filter((step) => hasFailed(step));
    return [
      densityOf(stepIntervals(steps, now), place, scale.width, BUCKETS),
      densityOf(stepIntervals(failures, now), place, scale.width, BUCKETS),
    ];
  }, [steps, scale]);
  const from = (scale.toX(shown.start) / scale.width) * 100;
  const to = (scale.toX(shown.end) / scale.width) * 100;
  const zoomed = shown !== scale;
  const pick = (event: MouseEvent) => {
    const bounds = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const x = ((event.clientX - bounds.left) / bounds.width) * scale.width;
    const half = zoomed ? (scale.toX(shown.end) - scale.toX(shown.start)) / 2 : scale.width / 20;
    setZoom([scale.toMs(Math.max(0, x - half)) - begin, scale.toMs(Math.min(scale.width, x + half)) - begin]);
  };
  return (
    <button
      type="button"
      class="overview"
      aria-label="The whole run: click to zoom in"
      title="The whole run: click to zoom in"
      onClick={pick}
    >
      <Density counts={all} failed={failed} />
      {zoomed ? <span class="overview-window" style={{ left: `${from}%`, width: `${to - from}%` }} /> : null}
    </button>
  );
}
