import { batch, signal, type Signal } from "@preact/signals";
import { api, newKey } from "../api/client";
import { watchRuns, type Stop } from "../api/live";
import { asProblem, type Problem } from "../api/problem";
import type { InboxRow, Paged, RunView, SignalledView, SignalWaitView } from "../api/types";
import { RawJson } from "../model/json-text";

export type CardState = "open" | "sending" | "answered" | "gone";

/** A wait of a run that a person can answer. */
export interface Card {
  readonly key: string;
  readonly run: Signal<RunView>;
  readonly wait: SignalWaitView;
  readonly state: Signal<CardState>;
  readonly problem: Signal<Problem | null>;
  /** The answer, in words. */
  readonly answer: Signal<string>;
}

const PAGE = 51;
/** How long an answered card stays, to show the result. */
export const ANSWERED_MS = 5000;
const REFRESH_MS = 250;
const REWATCH_MS = 1000;

export type Load = () => Promise<Paged<InboxRow>>;

/** The runs that wait for a person. Longest waiting first and new ones last, so that no button moves under the pointer;
 * while the list is held, a card that was answered elsewhere stays in place and says so. */
export class InboxStore {
  readonly cards = signal<readonly Card[]>([]);
  readonly loaded = signal(false);
  readonly more = signal(false);
  readonly problem = signal<Problem | null>(null);

  private readonly holds = new Set<string>();
  private readonly keys = new Map<string, { text: string; key: string }>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asking = false;
  private again = false;

  constructor(private readonly load: Load = () => api.get("/inbox", { size: PAGE }, { raw: ["schema"] })) {}

  hold(reason: string, on: boolean): void {
    if (on) this.holds.add(reason);
    else if (this.holds.delete(reason) && this.holds.size === 0) this.sweep();
  }

  /** Follows the list until stopped. */
  follow(): Stop {
    let stopped = false;
    let stop: Stop = () => {};
    let rewatch: ReturnType<typeof setTimeout> | undefined;
    const changed = (): void => this.refreshSoon();
    const begin = (): void => {
      rewatch = undefined;
      stop();
      if (stopped) return;
      stop = watchRuns({ waiting: true }, {
        rows: changed,
        row: changed,
        gone: changed,
        new: (count) => {
          changed();
          // follows new ones from then on
          if (count > 0 && rewatch === undefined) rewatch = setTimeout(begin, REWATCH_MS);
        },
        stats: () => {},
        problem: (problem) => {
          this.problem.value = problem;
        },
      });
    };
    void this.refresh();
    begin();
    return () => {
      stopped = true;
      stop();
      clearTimeout(rewatch);
      clearTimeout(this.timer);
    };
  }

  private refreshSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.refresh();
    }, REFRESH_MS);
  }

  async refresh(): Promise<void> {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    try {
      const page = await this.load();
      this.take(page.rows, page.next !== null);
    } catch (error) {
      this.problem.value = asProblem(error);
    } finally {
      this.asking = false;
      if (this.again) {
        this.again = false;
        this.refreshSoon();
      }
    }
  }

  take(rows: readonly InboxRow[], more: boolean): void {
    const fresh = new Map(rows.flatMap(({ run, waits }) => waits.map((wait) => [keyOf(run, wait), { run, wait }] as const)));
    batch(() => {
      const kept = this.cards.peek().filter((card) => this.keeps(card, fresh.get(card.key)));
      const known = new Set(kept.map((card) => card.key));
      const added = [...fresh].filter(([key]) => !known.has(key)).map(([key, { run, wait }]) => cardOf(key, run, wait));
      added.sort((a, b) => (a.wait.since < b.wait.since ? -1 : 1));
      if (added.length > 0 || kept.length < this.cards.peek().length) this.cards.value = [...kept, ...added];
      this.more.value = more;
      this.loaded.value = true;
      this.problem.value = null;
    });
  }

  private keeps(card: Card, fresh: { run: RunView } | undefined): boolean {
    if (fresh !== undefined) {
      card.run.value = fresh.run;
      if (card.state.peek() === "gone") card.state.value = "open";
      return true;
    }
    if (card.state.peek() === "answered" || card.state.peek() === "sending") return true;
    if (this.holds.size === 0) return false;
    card.state.value = "gone";
    return true;
  }

  private sweep(): void {
    const left = this.cards.peek().filter((card) => card.state.peek() !== "gone");
    if (left.length < this.cards.peek().length) this.cards.value = left;
  }

  /** Sends the value as it is written. Sending the same value again is idempotent. */
  async answer(card: Card, text: string, words: string): Promise<void> {
    if (card.state.peek() !== "open") return;
    card.state.value = "sending";
    card.problem.value = null;
    const path = `/runs/${card.run.peek().run_id}/signal`;
    try {
      const body = { name: card.wait.signal, payload: new RawJson(text) };
      const sent = await api.send<SignalledView>("POST", path, body, { key: this.keyOf(card, text) });
      batch(() => {
        card.answer.value = sent.delivered ? words : `${words}; the run was no longer waiting, so the signal is stored`;
        card.state.value = "answered";
      });
      setTimeout(() => {
        this.cards.value = this.cards.peek().filter((each) => each !== card);
      }, ANSWERED_MS);
    } catch (error) {
      batch(() => {
        card.problem.value = asProblem(error);
        card.state.value = "open";
      });
    }
  }

  private keyOf(card: Card, text: string): string {
    const known = this.keys.get(card.key);
    if (known?.text === text) return known.key;
    const key = newKey();
    this.keys.set(card.key, { text, key });
    return key;
  }
}

function keyOf(run: RunView, wait: SignalWaitView): string {
  return `${run.run_id} ${wait.step_id}`;
}

function cardOf(key: string, run: RunView, wait: SignalWaitView): Card {
  return { key, run: signal(run), wait, state: signal<CardState>("open"), problem: signal<Problem | null>(null), answer: signal("") };
}
