/** Drawing uses at most a twentieth of the main thread; half of that while changes continue. */
const SHARE = 20;
const LASTING_SHARE = 40;
const AT_ONCE = 4;

/** Delays drawing. Occasional changes are drawn at once; continuous changes a few times a second, which is enough to
 * follow them. */
export class DrawPace {
  private drawnAt = -Infinity;
  private costMs = 0;
  /** When the full burst is available again: each drawing moves it later. */
  private fullAt = -Infinity;

  constructor(private readonly everyMs: number) {}

  waitMs(now: number): number {
    return Math.max(0, this.drawnAt + this.costMs * SHARE - now, this.fullAt - (AT_ONCE - 1) * this.everyMs - now);
  }

  drawn(now: number): void {
    this.drawnAt = now;
    this.fullAt = Math.max(this.fullAt, now) + Math.max(this.everyMs, this.costMs * LASTING_SHARE);
  }

  cost(ms: number): void {
    this.costMs = ms;
  }
}
