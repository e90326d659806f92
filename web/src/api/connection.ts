import { computed, signal } from "@preact/signals";

export interface Connection {
  /** "live": updates come from a stream; "asking": the page polls; "lost": the server does not respond. */
  readonly state: "live" | "asking" | "lost";
  /** When this state began, by this browser's clock. For "lost": the last response, so the age of the shown data. */
  readonly since: number;
  /** When the next retry is due; null unless the state is "lost". */
  readonly retryAt: number | null;
}

const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 15_000;
/** A visible page without a stream that has received nothing for this long probes the server. */
const SILENCE_MS = 2000;
const PROBE_TIMEOUT_MS = 5000;

/** Whether the server responds. Code that fetches reports here; code that waits for the server uses `restored`. */
export class Connecting {
  private readonly lost = signal<{ since: number; retryAt: number } | null>(null);
  private readonly streams = signal(0);
  private readonly restoredListeners = new Set<() => void>();
  private lastAnswerAt = Date.now();
  private began = Date.now();
  private delay = FIRST_DELAY_MS;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private probing = false;

  readonly state = computed<Connection>(() => {
    const lost = this.lost.value;
    if (lost !== null) return { state: "lost", since: lost.since, retryAt: lost.retryAt };
    return { state: this.streams.value > 0 ? "live" : "asking", since: this.began, retryAt: null };
  });

  /** `probe` resolves if the server responds, whatever the response. */
  constructor(private readonly probe: (abort: AbortSignal) => Promise<void>) {}

  get isLost(): boolean {
    return this.lost.peek() !== null;
  }

  /** The server responded, perhaps with an error. */
  answered(): void {
    this.lastAnswerAt = Date.now();
    if (!this.isLost) return;
    clearTimeout(this.timer);
    this.delay = FIRST_DELAY_MS;
    this.began = this.lastAnswerAt;
    this.lost.value = null;
    for (const listener of [...this.restoredListeners]) listener();
  }

  /** A request got no response. A single failure may be accidental, so the server is probed before the state becomes
   * "lost". */
  failed(): void {
    if (!this.isLost) void this.look();
  }

  retryNow(): void {
    if (this.isLost) void this.look();
  }

  streamOpened(): void {
    this.streams.value += 1;
    this.answered();
  }

  streamClosed(): void {
    this.streams.value = Math.max(0, this.streams.peek() - 1);
  }

  /** Calls back each time the server responds again after it was lost. */
  restored(listener: () => void): () => void {
    this.restoredListeners.add(listener);
    return () => this.restoredListeners.delete(listener);
  }

  /** Call about once a second while the page is visible. */
  tick(): void {
    const silent = this.streams.peek() === 0 && Date.now() - this.lastAnswerAt >= SILENCE_MS;
    if (silent && !this.isLost && !this.probing) void this.look();
  }

  private async look(): Promise<void> {
    if (this.probing) return;
    this.probing = true;
    clearTimeout(this.timer);
    const abort = new AbortController();
    const timeout = setTimeout(() => abort.abort(), PROBE_TIMEOUT_MS);
    try {
      await this.probe(abort.signal);
      this.probing = false;
      this.answered();
    } catch {
      this.probing = false;
      this.schedule();
    } finally {
      clearTimeout(timeout);
    }
  }

  private schedule(): void {
    const since = this.lost.peek()?.since ?? this.lastAnswerAt;
    this.lost.value = { since, retryAt: Date.now() + this.delay };
    this.timer = setTimeout(() => void this.look(), this.delay);
    this.delay = Math.min(this.delay * 2, LONGEST_DELAY_MS);
  }
}
