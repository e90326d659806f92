/** Decides which tab holds the stream: browsers open at most six connections to a host, and each stream uses one.
 *
 * The tab that was focused last holds it. Tabs notify each other over a channel; if two take it at once, the later one
 * wins on both sides. A hidden tab releases it. */

interface Channel {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent) => unknown) | null;
  close(): void;
}

type Message = { kind: "take"; at: number; id: string } | { kind: "left"; id: string };

export interface Surroundings {
  readonly channel: Channel | null;
  readonly now: () => number;
  readonly visible: () => boolean;
  /** Delays, so that one of several tabs comes first. */
  readonly later: (act: () => void) => void;
}

export class Tabs {
  readonly id: string;
  private at = 0;
  private holder = "";
  private holderAt = 0;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly around: Surroundings,
    id = Math.random().toString(36).slice(2),
  ) {
    this.id = id;
    if (around.channel) around.channel.onmessage = (event) => this.heard(event.data as Message);
  }

  get holds(): boolean {
    return this.holder === this.id;
  }

  /** Call when this tab was opened, shown or focused. */
  take(): void {
    if (!this.around.visible()) return;
    this.at = Math.max(this.around.now(), this.holderAt + 1);
    this.say({ kind: "take", at: this.at, id: this.id });
    this.become(this.id, this.at);
  }

  /** Call when this tab was hidden, or is being closed. */
  leave(): void {
    if (!this.holds) return;
    this.say({ kind: "left", id: this.id });
    this.become("", this.holderAt);
  }

  changed(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private heard(message: Message): void {
    if (message.kind === "take") {
      const later = message.at > this.holderAt || (message.at === this.holderAt && message.id > this.holder);
      if (later) this.become(message.id, message.at);
      else if (this.holds) this.say({ kind: "take", at: this.at, id: this.id });
      return;
    }
    if (message.id !== this.holder) return;
    this.become("", this.holderAt);
    this.around.later(() => {
      if (this.holder === "") this.take();
    });
  }

  private become(holder: string, at: number): void {
    const held = this.holds;
    this.holder = holder;
    this.holderAt = at;
    if (held !== this.holds) for (const listener of [...this.listeners]) listener();
  }

  private say(message: Message): void {
    this.around.channel?.postMessage(message);
  }
}
