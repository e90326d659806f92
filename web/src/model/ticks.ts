// The ticks of the axis, at round times of the time zone.
import { formatDuration } from "./durations";
import { formatTime, offsetOf, partsOf, type Zone } from "./times";
import type { Piece, TimeScale } from "./time-scale";

export interface Tick {
  readonly ms: number;
  readonly x: number;
  readonly label: string;
  /** With the time zone, for the tooltip. */
  readonly title: string;
}

export interface TickOptions {
  readonly zone: Zone;
  /** The minimum distance. */
  readonly spacingPx?: number;
  /** Labels are durations since this time, for two runs on one scale. */
  readonly relativeTo?: number;
  /** Only the ticks of this part of the scale. */
  readonly fromPx?: number;
  readonly toPx?: number;
}

const DAY = 86_400_000;
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3_600_000),
  ...[1, 2, 7, 14, 28, 91, 182, 364].map((days) => days * DAY),
];
const MOST = 400;

/** None in folded gaps, which have labels of their own. */
export function ticksOf(scale: TimeScale, options: TickOptions): Tick[] {
  const spacing = options.spacingPx ?? 96;
  const left = options.fromPx ?? 0;
  const right = options.toPx ?? scale.width;
  const ticks: Tick[] = [];
  let last = -Infinity;
  for (const piece of joined(scale.pieces)) {
    if (piece.gap || piece.x + piece.width < left || piece.x > right || piece.width <= 0) continue;
    const step = stepFor((spacing * (piece.end - piece.start)) / piece.width);
    const from = Math.max(piece.start, scale.toMs(left));
    const to = Math.min(piece.end, scale.toMs(right));
    for (const ms of roundTimes(from, to, step, options)) {
      const x = scale.toX(ms);
      if (x - last < spacing || ticks.length >= MOST) continue;
      last = x;
      ticks.push({ ms, x, label: labelOf(ms, step, options), title: formatTime(ms, options.zone, "time") });
    }
  }
  return ticks;
}

/** Merges adjacent pieces of the same rate. */
function joined(pieces: readonly Piece[]): Piece[] {
  const made: Piece[] = [];
  for (const piece of pieces) {
    const last = made.at(-1);
    const rate = piece.width / (piece.end - piece.start);
    if (last && !last.gap && !piece.gap && Math.abs(last.width / (last.end - last.start) - rate) < rate * 1e-9) {
      made[made.length - 1] = { ...last, end: piece.end, width: last.width + piece.width };
    } else made.push(piece);
  }
  return made;
}

function stepFor(ms: number): number {
  return STEPS.find((step) => step >= ms) ?? Math.ceil(ms / (364 * DAY)) * 364 * DAY;
}

function* roundTimes(from: number, to: number, step: number, options: TickOptions): Generator<number> {
  // In the zone's local time: hourly ticks are at full hours, even in zones with half-hour offsets.
  const zero = options.relativeTo ?? -offsetOf(from, options.zone);
  for (let count = Math.ceil((from - zero) / step), made = 0; made < MOST; count += 1, made += 1) {
    let ms = zero + count * step;
    if (options.relativeTo === undefined && step >= 3_600_000) ms -= offsetOf(ms, options.zone) + zero;
    if (ms > to) return;
    if (ms >= from) yield ms;
  }
}

function labelOf(ms: number, step: number, options: TickOptions): string {
  if (options.relativeTo !== undefined) {
    const since = Math.round(ms - options.relativeTo);
    return since === 0 ? "0" : `+${formatDuration(since)}`;
  }
  const p = partsOf(ms, options.zone);
  if (step >= DAY) return `${p.month}-${p.day}`;
  if (step >= 60_000) return `${p.hour}:${p.minute}`;
  const seconds = `${p.hour}:${p.minute}:${p.second}`;
  return step >= 1000 ? seconds : `${seconds}.${String(Math.floor(ms % 1000)).padStart(3, "0")}`;
}
