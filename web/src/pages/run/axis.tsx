// The time axis above the rows: ticks, folded gaps and patches; dragging on it zooms.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { AxisMark } from "../../model/axis-marks";
import type { Gap, TimeScale } from "../../model/time-scale";
import { ticksOf, type Tick } from "../../model/time-scale";
import { formatTime, type Zone } from "../../model/times";
import { prefs } from "../../state/prefs";
import { toggleGap } from "./view";

/** A shorter drag is a click. */
const DRAG_PX = 6;

interface AxisProps {
  scale: TimeScale;
  marks: readonly AxisMark[];
  onZoom: (from: number, to: number) => void;
  /** Other elements with a position in time. */
  children?: ComponentChildren;
}

export function Axis({ scale, marks, onZoom, children }: AxisProps) {
  const [dragged, setDragged] = useState<readonly [number, number] | null>(null);
  const root = useRef<HTMLDivElement>(null);
  const zone = prefs.value.zone;
  const ticks = ticksOf(scale, { zone, spacingPx: 110 }).filter((tick) => isFree(tick, scale));
  const drag = (event: PointerEvent) => {
    const axis = root.current;
    if (axis === null || event.button !== 0 || (event.target as HTMLElement).closest("button") !== null) return;
    const left = axis.getBoundingClientRect().left;
    const from = event.clientX - left;
    axis.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent) => setDragged([from, moved.clientX - left]);
    const end = (last: PointerEvent) => {
      axis.removeEventListener("pointermove", move);
      axis.removeEventListener("pointerup", end);
      setDragged(null);
      const to = last.clientX - left;
      if (Math.abs(to - from) >= DRAG_PX) onZoom(scale.toMs(Math.min(from, to)), scale.toMs(Math.max(from, to)));
    };
    axis.addEventListener("pointermove", move);
    axis.addEventListener("pointerup", end);
  };
  return (
    <div class="axis" ref={root} onPointerDown={drag}>
      {ticks.map((tick) => (
        <span key={tick.ms} class="tick" style={{ left: `${tick.x}px` }} title={tick.title}>
          {tick.label}
        </span>
      ))}
      {scale.gaps.map((gap) =>
        gap.x + gap.width < 0 || gap.x > scale.width ? null : (
          <button
            key={gap.key}
            type="button"
            class={`gap${gap.folded ? "" : " is-unfolded"}`}
            aria-pressed={!gap.folded}
            aria-label={`${gap.label} without activity${gap.folded ? ", folded" : ""}`}
            title={gapTitle(gap, zone)}
            style={{ left: `${gap.x}px`, width: `${gap.width}px` }}
            onClick={() => toggleGap(gap.key)}
          >
            <span>{gap.label}</span>
          </button>
        ),
      )}
      {children}
      {marks.map((mark) => (
        <span
          key={`${mark.ms} ${mark.label}`}
          class={`axis-mark axis-mark-${mark.kind}`}
          style={{ left: `${scale.toX(mark.ms)}px` }}
          title={`${mark.label}\n${formatTime(mark.ms, zone, "time")}`}
        />
      ))}
      {dragged !== null ? (
        <span
          class="axis-drag"
          style={{ left: `${Math.min(...dragged)}px`, width: `${Math.abs(dragged[1] - dragged[0])}px` }}
        />
      ) : null}
    </div>
  );
}

function gapTitle(gap: Gap, zone: Zone): string {
  const from = formatTime(gap.start, zone, "datetime");
  const to = formatTime(gap.end, zone, "datetime");
  return `${gap.label} in which nothing started or ended.\n${from} to ${to}\nClick to ${gap.folded ? "unfold" : "fold"}.`;
}

/** The width of a character of a label, and its padding. */
const CHARACTER_PX = 6.5;
const BESIDE_PX = 8;

/** Whether the label is neither under the label of a gap nor clipped. */
function isFree({ x, label }: Tick, scale: TimeScale): boolean {
  const end = x + label.length * CHARACTER_PX + BESIDE_PX;
  if (x < 0 || end > scale.width) return false;
  return scale.gaps.every((gap) => !gap.folded || end < gap.x || x > gap.x + gap.width - 2);
}
