/** Drawing takes at most a twentieth of the main thread, however much there is to draw; half of that if it goes on. */
const SHARE = 20;
const LASTING_SHARE = 40;
const AT_ONCE = 4;

/** How long what has changed waits until it is drawn. What happens now and then is drawn at once; if something happens
 * all the time, a few times a second are enough to watch. */
export class DrawPace {
  private drawnAt = -Infinity;
  private costMs = 0;
  /** When as many as ever may be drawn at once: later with each that is. */
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
