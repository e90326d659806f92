// The scale of a timeline: from all its steps, for the visible range.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { RefObject } from "preact";
import type { TimelineStepView, WholeRunView } from "../../api/types";
import type { Halt } from "../../model/records";
import { scaleIntervals } from "../../model/step-rows";
import { buildScale, zoomScale, type TimeScale } from "../../model/time-scale";
import { msOrNull, toMs } from "../../model/times";
import { serverNow } from "../../state/clock";
import { view } from "./view";

const TICK_MS = 250;
/** Extra space after the current time, so that the scale is rebuilt less often. */
const AHEAD_SHARE = 0.04;
const AHEAD_LEAST_MS = 400;

export interface Scales {
  /** The whole run. */
  whole: TimeScale;
  /** The visible range. */
  shown: TimeScale;
}

export function useScales(
  run: WholeRunView,
  steps: readonly TimelineStepView[],
  inside: readonly TimelineStepView[],
  halts: readonly Halt[],
  width: number,
): Scales {
  const begin = toMs(run.created_at);
  const finished = msOrNull(run.finished_at);
  const [edge, setEdge] = useState(() => ahead(begin));
  useEffect(() => {
    if (finished !== null) return;
    const timer = setInterval(() => setEdge((was) => (serverNow() < was ? was : ahead(begin))), TICK_MS);
    return () => clearInterval(timer);
  }, [begin, finished]);
  const end = finished ?? Math.max(edge, lastRetry(steps));
  const { folding, unfolded, zoom } = view.value;
  const intervals = useMemo(() => scaleIntervals([...steps, ...inside], halts), [steps, inside, halts]);
  const opened = [...unfolded].join();
  const whole = useMemo(
    () => buildScale(intervals, [begin, end], width, { folding, unfolded, until: end === edge ? serverNow() : end }),
    [intervals, begin, end, width, folding, opened],
  );
  const [from, to] = zoom ?? [null, null];
  const shown = useMemo(
    () => (from === null || to === null ? whole : zoomScale(whole, begin + from, begin + to, width)),
    [whole, from, to, begin, width],
  );
  return { whole, shown };
}

function ahead(begin: number): number {
  const now = serverNow();
  return now + Math.max(AHEAD_LEAST_MS, (now - begin) * AHEAD_SHARE);
}

/** The scale includes the next retry, so that its time is visible. */
function lastRetry(steps: readonly TimelineStepView[]): number {
  let last = 0;
  for (const step of steps)
    if (step.status === "pending" && step.retry_at !== null) last = Math.max(last, toMs(step.retry_at));
  return last === 0 ? 0 : last + AHEAD_LEAST_MS;
}

/** Moves the line of the current time and open bars four times a second, with a CSS variable and without a render. */
export function useNowLine(box: RefObject<HTMLElement | null>, scale: TimeScale, live: boolean): void {
  useEffect(() => {
    const move = () => {
      const x = scale.toX(serverNow());
      box.current?.style.setProperty("--now-x", `${Math.min(Math.max(x, -10), scale.width + 10).toFixed(1)}px`);
    };
    move();
    if (!live) return;
    const timer = setInterval(move, TICK_MS);
    return () => clearInterval(timer);
  }, [scale, live]);
}

export function useWidth(box: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    measure();
    const sizes = new ResizeObserver(measure);
    sizes.observe(element);
    return () => sizes.disconnect();
  }, []);
  return width;
}

const NARROW = "(max-width: 640px)";

/** Whether there is only space for a list: the same limit as in timeline.css. */
export function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const change = () => setNarrow(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return narrow;
}
