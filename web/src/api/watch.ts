import { connecting } from "./client";
import { asProblem, type Problem } from "./problem";

export type Way = "nothing" | "stream" | "asking";

/** Something that can be followed with a stream or by polling. */
export interface Source {
  /** The URL of the stream, continuing from the current position. */
  address(): string;
  event(kind: string, data: unknown): void;
  ask(abort: AbortSignal): Promise<void>;
  problem(problem: Problem): void;
  readonly kinds: readonly string[];
}

const ASK_MS = 2000;
const REOPEN_MS = 1000;
const LONGEST_MS = 30_000;

/** Follows one source, by stream or by polling, as its tab currently may. */
export class Watch {
  private way: Way = "nothing";
  private stream: EventSource | null = null;
  private open = false;
  private abort: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private forget: (() => void) | null = null;

  constructor(private readonly source: Source) {}

  become(way: Way): void {
    if (way === this.way) return;
    this.end();
    this.way = way;
    if (way === "nothing") return;
    this.forget = connecting.restored(() => this.begin());
    this.begin();
  }

  private begin(): void {
    clearTimeout(this.timer);
    if (connecting.isLost) return;
    if (this.way === "stream") this.follow();
    else if (this.way === "asking") void this.ask();
  }

  private end(): void {
    clearTimeout(this.timer);
    this.forget?.();
    this.forget = null;
    this.abort?.abort();
    this.abort = null;
    this.close();
  }

  // --- streaming -----------------------------------------------------------------------------------------------------

  private follow(): void {
    this.close();
    const stream = new EventSource(this.source.address());
    this.stream = stream;
    stream.onopen = () => {
      this.open = true;
      this.failures = 0;
      connecting.streamOpened();
    };
    stream.onerror = () => {
      if (stream === this.stream) void this.broken();
    };
    for (const kind of this.source.kinds) {
      stream.addEventListener(kind, (event) => {
        if (stream === this.stream) this.source.event(kind, JSON.parse((event as MessageEvent<string>).data));
      });
    }
  }

  /** The server ended or refused the stream, or is down. A poll finds out which, and catches up. */
  private async broken(): Promise<void> {
    const opened = this.open;
    this.close();
    const answered = await this.askOnce();
    if (this.way !== "stream" || connecting.isLost) return;
    this.failures = answered ? 0 : this.failures + 1;
    this.timer = setTimeout(() => this.begin(), this.pause(opened ? REOPEN_MS : ASK_MS));
  }

  private close(): void {
    this.stream?.close();
    this.stream = null;
    if (this.open) connecting.streamClosed();
    this.open = false;
  }

  // --- polling -------------------------------------------------------------------------------------------------------

  private async ask(): Promise<void> {
    const answered = await this.askOnce();
    if (this.way !== "asking") return;
    this.failures = answered ? 0 : this.failures + 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.begin(), this.pause(ASK_MS));
  }

  private async askOnce(): Promise<boolean> {
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    try {
      await this.source.ask(abort.signal);
      return true;
    } catch (error) {
      if (!abort.signal.aborted) this.source.problem(asProblem(error));
      return false;
    }
  }

  private pause(shortest: number): number {
    return Math.min(shortest * 2 ** Math.min(this.failures, 5), LONGEST_MS);
  }
}
