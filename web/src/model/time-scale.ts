// Maps times to positions: piecewise linear, with idle gaps folded.
import { formatDuration } from "./durations";
import { median, mergeIntervals } from "./intervals";

export { type Tick, type TickOptions, ticksOf } from "./ticks";

export const FOLD_PX = 64;
const LEAST_FOLD_PX = 6;
const FOLDED_SHARE = 0.4;
const LEAST_BAR_PX = 4;
const LEAST_FOLD_MS = 1000;
const TIMES_THE_MEDIAN = 4;
const PX_PER_MS = 1000;

/** `end` null: still open. `wait`: a sleep, a wait or a backoff, during which nothing executes. */
export interface ScaleInterval {
  readonly start: number;
  readonly end: number | null;
  readonly wait: boolean;
}

export interface ScaleOptions {
  /** Keys of gaps that the user expanded. */
  readonly unfolded: ReadonlySet<string>;
  /** False: linear, without folding. */
  readonly folding: boolean;
  /** The current time, if the range ends later: labels of gaps do not count beyond it. */
  readonly until?: number;
}

/** A gap that is, or (`folded` false) was, drawn narrower than its duration. */
export interface Gap {
  readonly key: string;
  readonly start: number;
  readonly end: number;
  readonly x: number;
  readonly width: number;
  readonly label: string;
  readonly folded: boolean;
}

/** Begins at x 0. `width` exceeds the requested one if a gap was expanded: everything after it moves to the right. */
export interface TimeScale {
  toX(ms: number): number;
  toMs(x: number): number;
  readonly gaps: readonly Gap[];
  readonly pieces: readonly Piece[];
  readonly start: number;
  readonly end: number;
  readonly width: number;
}

/** An interval with a constant rate, from `start` to `end`, beginning at `x`. */
export interface Piece {
  readonly start: number;
  readonly end: number;
  readonly x: number;
  readonly width: number;
  readonly gap: boolean;
}

/** Maps `range` to positions from 0 to `widthPx`. */
export function buildScale(
  intervals: readonly ScaleInterval[],
  range: readonly [number, number],
  widthPx: number,
  options: ScaleOptions,
): TimeScale {
  const start = range[0];
  const width = Math.max(widthPx, 1);
  const end = Math.max(range[1], start + width / PX_PER_MS);
  const folds = options.folding ? foldsOf(intervals, start, end, width) : [];
  const foldPx = Math.min(FOLD_PX, (FOLDED_SHARE * width) / Math.max(folds.length, 1));
  const foldedMs = folds.reduce((sum, fold) => sum + fold.end - fold.start, 0);
  const rate = (width - foldPx * folds.length) / (end - start - foldedMs);
  const pieces: Piece[] = [];
  const gaps: Gap[] = [];
  let x = 0;
  const add = (from: number, to: number, px: number, gap: boolean) => {
    if (to > from) pieces.push({ start: from, end: to, x, width: px, gap });
    x += px;
  };
  let at = start;
  for (const fold of folds) {
    add(at, fold.start, (fold.start - at) * rate, false);
    const ms = fold.end - fold.start;
    const key = gapKey(fold.start);
    const folded = !options.unfolded.has(key);
    // At the rate of the rest, an expanded day between steps of milliseconds would be enormously wide.
    const px = folded ? foldPx : Math.min(Math.max(ms * rate, foldPx), width);
    const label = formatDuration(Math.min(fold.end, options.until ?? end) - fold.start);
    gaps.push({ key, start: fold.start, end: fold.end, x, width: px, label, folded });
    add(fold.start, fold.end, px, folded);
    at = fold.end;
  }
  add(at, end, (end - at) * rate, false);
  return new PieceScale(pieces, gaps, start, end, x);
}

/** By its begin: an open gap grows at its end. */
function gapKey(start: number): string {
  return Math.round(start).toString(36);
}

interface Stretch {
  readonly start: number;
  readonly end: number;
}

function foldsOf(intervals: readonly ScaleInterval[], start: number, end: number, width: number): Stretch[] {
  const inside = intervals
    .map((each) => ({ start: Math.max(each.start, start), end: Math.min(each.end ?? end, end), wait: each.wait }))
    .filter((each) => each.start <= each.end && each.start <= end && each.end >= start);
  const pxPerMs = width / (end - start);
  // Ignores bars without length, which folding cannot widen.
  const least = inside.reduce((ms, { start: a, end: b }) => (b > a ? Math.min(ms, b - a) : ms), Infinity);
  if (!inside.length || least * pxPerMs >= LEAST_BAR_PX) return [];
  const stretches = stretchesOf(inside, start, end);
  const work = mergeIntervals(inside.filter((each) => !each.wait));
  const limit = Math.max(LEAST_FOLD_MS, TIMES_THE_MEDIAN * median(withWork(stretches, work)));
  const most = Math.floor((FOLDED_SHARE * width) / LEAST_FOLD_PX);
  const candidates = stretches
    .filter((each) => each.end - each.start > limit)
    .sort((a, b) => b.end - b.start - (a.end - a.start))
    .slice(0, most);
  // Something must stay to scale, with at least a microsecond per pixel, the resolution of times.
  let rest = candidates.reduce((left, each) => left - (each.end - each.start), end - start);
  while (candidates.length && rest * PX_PER_MS < width) {
    const shortest = candidates.pop() as Stretch;
    rest += shortest.end - shortest.start;
  }
  return candidates.sort((a, b) => a.start - b.start);
}

function stretchesOf(inside: readonly Stretch[], start: number, end: number): Stretch[] {
  const points = new Float64Array(inside.length * 2 + 2);
  inside.forEach((each, index) => {
    points[index * 2] = each.start;
    points[index * 2 + 1] = each.end;
  });
  points[inside.length * 2] = start;
  points[inside.length * 2 + 1] = end;
  points.sort();
  const stretches: Stretch[] = [];
  let from = start;
  for (const to of points) {
    if (to > from) stretches.push({ start: from, end: to });
    from = Math.max(from, to);
  }
  return stretches;
}

/** The lengths of the stretches in which something executes. Both lists are sorted and without overlaps. */
function withWork(stretches: readonly Stretch[], work: readonly Stretch[]): number[] {
  const lengths: number[] = [];
  let index = 0;
  for (const stretch of stretches) {
    while (index < work.length && (work[index] as Stretch).end <= stretch.start) index += 1;
    const nearest = work[index];
    if (nearest && nearest.start < stretch.end) lengths.push(stretch.end - stretch.start);
  }
  return lengths;
}

class PieceScale implements TimeScale {
  constructor(
    readonly pieces: readonly Piece[],
    readonly gaps: readonly Gap[],
    readonly start: number,
    readonly end: number,
    readonly width: number,
  ) {}

  toX(ms: number): number {
    const piece = this.piece((each) => each.start <= ms);
    return piece.x + ((ms - piece.start) / (piece.end - piece.start)) * piece.width;
  }

  toMs(x: number): number {
    const piece = this.piece((each) => each.x <= x);
    if (piece.width === 0) return piece.end;
    return piece.start + ((x - piece.x) / piece.width) * (piece.end - piece.start);
  }

  /** The last piece that begins before; the first and the last extend beyond the ends of the scale. */
  private piece(before: (piece: Piece) => boolean): Piece {
    let low = 0;
    let high = this.pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (before(this.pieces[middle] as Piece)) low = middle;
      else high = middle - 1;
    }
    return this.pieces[low] as Piece;
  }
}

// --- zoom ------------------------------------------------------------------------------------------------------------

/** The same scale with `from` at x 0 and `to` at x `widthPx`; zooms to one microsecond per pixel at most. */
export function zoomScale(scale: TimeScale, from: number, to: number, widthPx: number): TimeScale {
  const left = scale.toX(from);
  const factor = Math.min(widthPx / Math.max(scale.toX(to) - left, 1e-9), mostZoom(scale));
  const move = <T extends { readonly x: number; readonly width: number }>(each: T): T => ({
    ...each,
    x: (each.x - left) * factor,
    width: each.width * factor,
  });
  const end = scale.toMs(left + widthPx / factor);
  return new PieceScale(scale.pieces.map(move), scale.gaps.map(move), from, end, widthPx);
}

function mostZoom(scale: TimeScale): number {
  const steepest = scale.pieces.reduce((most, each) => Math.max(most, each.width / (each.end - each.start)), 0);
  return Math.max(PX_PER_MS / steepest, 1);
}

/** The visible range after zooming by a factor, with the time at `x` fixed. */
export function zoomRange(scale: TimeScale, factor: number, x: number): [number, number] {
  const width = scale.width / Math.min(factor, mostZoom(scale));
  const left = x - (x / scale.width) * width;
  return [scale.toMs(left), scale.toMs(left + width)];
}

/** The visible range after panning by some pixels, kept within `whole`. */
export function panRange(scale: TimeScale, byPx: number, whole: TimeScale): [number, number] {
  const from = scale.toMs(byPx);
  const to = scale.toMs(scale.width + byPx);
  if (from < whole.start) return [whole.start, scale.toMs(scale.width + scale.toX(whole.start))];
  if (to > whole.end) return [scale.toMs(scale.toX(whole.end) - scale.width), whole.end];
  return [from, to];
}
