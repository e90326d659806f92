// Zoom of the timeline: keys, the wheel with Ctrl, dragging on the axis.
import type { RefObject } from "preact";
import { panRange, zoomRange, type TimeScale } from "../../model/time-scale";
import { serverNow } from "../../state/clock";
import { setZoom, view } from "./view";

/** Less than a tenth of a millisecond is not useful. */
const LEAST_MS = 0.1;
const WHEEL_FACTOR = 1.0015;

interface ZoomOf {
  box: RefObject<HTMLElement | null>;
  shown: TimeScale;
  whole: TimeScale;
  begin: number;
}

export function useZoom({ box, shown, whole, begin }: ZoomOf): {
  by: (factor: number) => void;
  wheel: (event: WheelEvent) => void;
} {
  const set = ([from, to]: readonly [number, number]): void => {
    const low = Math.max(from, whole.start);
    const high = Math.min(to, whole.end);
    if (high - low < LEAST_MS) return;
    const all = low <= whole.start && high >= whole.end;
    setZoom(all ? null : [low - begin, high - begin]);
  };
  const by = (factor: number): void => {
    if (factor === 0) return setZoom(null);
    if (factor < 1 && view.peek().zoom === null) return;
    const now = shown.toX(serverNow());
    set(zoomRange(shown, factor, now > 0 && now < shown.width ? now : shown.width / 2));
  };
  const wheel = (event: WheelEvent): void => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const left = box.current?.getBoundingClientRect().left ?? 0;
      const axis = box.current?.querySelector(".axis")?.getBoundingClientRect().left ?? left;
      set(zoomRange(shown, WHEEL_FACTOR ** -event.deltaY, Math.max(0, event.clientX - axis)));
    } else if (event.shiftKey && view.peek().zoom !== null) {
      event.preventDefault();
      set(panRange(shown, event.deltaY || event.deltaX, whole));
    }
  };
  return { by, wheel };
}
