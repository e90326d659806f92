// The positions of the parts of a row, in pixels.
import type { TimeScale } from "../../model/time-scale";
import { spanOf } from "../../model/intervals";
import { stepIntervals, type Row, type Segment } from "../../model/step-rows";

/** Minimum widths: narrower parts could not be distinguished or clicked. */
const LEAST_PX: Readonly<Record<string, number>> = {
  attempt: 5,
  failed: 10,
  sleep: 6,
  signal: 6,
  child: 6,
  paused: 5,
  queue: 2,
};
/** Half the width of a mark, so that it is not clipped at the end of the scale. */
export const MARK_PX = 8;
const CHARACTER_PX = 6.1;
const NOTE_GAP_PX = 7;
/** The cross at the end of a failed part. */
const CROSS_PX = 12;

export interface Place {
  left: number;
  width: number;
  /** Still open: its right end moves with the current time. */
  open: boolean;
  /** Where it crosses folded gaps. */
  breaks: readonly number[];
}

export function placeOf(segment: Segment, scale: TimeScale, nowMs: number): Place | null {
  const end = segment.end ?? Math.max(nowMs, segment.start);
  if (end < scale.start || segment.start > scale.end) return null;
  const left = scale.toX(Math.max(segment.start, scale.start));
  const right = scale.toX(Math.min(end, scale.end));
  const failed = segment.shape === "attempt" && segment.state === "failed";
  const least = LEAST_PX[failed ? "failed" : segment.shape] ?? 0;
  const width = Math.max(right - left, least);
  const shifted = Math.max(0, Math.min(left, scale.width - width));
  const breaks = scale.gaps
    .filter((gap) => gap.x > left - 1 && gap.x + gap.width < right + 1 && segment.start < gap.end && end > gap.start)
    .map((gap) => gap.x + gap.width / 2 - shifted);
  return { left: shifted, width, open: segment.end === null, breaks };
}

export interface NotePlace {
  x: number;
  /** The available width. */
  most: number;
  /** Before the first part instead of after the last. */
  before: boolean;
  /** Over the part. */
  over?: boolean;
}

/** After the last part if it fits there, else before the first, else over the end of a single part, but not over its
 * cross; clipped if it fits nowhere. */
export function notePlace(
  text: string,
  [first, last]: readonly [number, number],
  width: number,
  segments: readonly Segment[],
): NotePlace {
  const needed = text.length * CHARACTER_PX + NOTE_GAP_PX;
  const behind = width - last - NOTE_GAP_PX;
  const inset = NOTE_GAP_PX + (segments.at(-1)?.mark === "cross" ? CROSS_PX : 0);
  const over = last - first - NOTE_GAP_PX - inset;
  if (segments.length === 1 && needed > Math.max(behind, first) && needed <= over)
    return { x: width - last + inset, most: over, before: true, over: true };
  if (last + needed <= width || behind >= first) return { x: last + NOTE_GAP_PX, most: behind, before: false };
  return { x: width - first + NOTE_GAP_PX, most: first - NOTE_GAP_PX, before: true };
}

/** From the first part to the last, including marks; null: nothing is visible. */
export function spanOfRow(row: Row, scale: TimeScale, nowMs: number): [number, number] | null {
  if (row.kind === "fold") {
    const span = spanOf(stepIntervals(row.members, nowMs));
    return span === null ? null : [Math.max(0, scale.toX(span.start)), Math.min(scale.width, scale.toX(span.end))];
  }
  let first = Infinity;
  let last = -Infinity;
  for (const segment of row.segments) {
    const place = placeOf(segment, scale, nowMs);
    if (place === null) continue;
    first = Math.min(first, place.left);
    const next = segment.mark === "next" && segment.until !== undefined ? scale.toX(segment.until) + MARK_PX : 0;
    const end = place.left + place.width + (segment.mark === "arrival" ? 5 : 0);
    last = Math.max(last, end, next);
  }
  return first <= last ? [first, last] : null;
}
