import { batch, computed, signal, type Signal } from "@preact/signals";
import { api } from "../api/client";
import { asking, watchRuns, type RunsListener, type Stop } from "../api/live";
import { asProblem, type Problem } from "../api/problem";
import type { CountsView, LiveListView, Paged, RunView } from "../api/types";
import { DrawPace } from "./draw-pace";

/** A run of the list. Its place and its object stay while what is known of it changes, so that only its row is drawn. */
export interface RunRow {
  readonly id: string;
  readonly run: Signal<RunView>;
  /** It is in the list no longer, and stays where it is as long as the list is held. */
  readonly gone: Signal<boolean>;
}

export interface PageTokens {
  readonly next: string | null;
  readonly prev: string | null;
}

export type Connect = (on: RunsListener) => Stop;

/** Most lists that are asked for anew because of new runs, however many come. */
const JOIN_MS = 1000;
const DRAW_EVERY_MS = 500;
export const PAGE_ROWS = 51;
const ASK_S = 5;

/** A list that is kept up to date under somebody's hands: rows are patched in place, and nothing moves while it is held
 * (something in it is hovered, focused or selected). New runs are counted then, and join when it is let go. */
export class RunsStore {
  readonly rows = signal<readonly RunRow[]>([]);
  readonly empty = computed(() => this.rows.value.length === 0);
  /** How many are not shown. */
  readonly unseen = signal(0);
  readonly more = signal(false);
  readonly counts = signal<CountsView | null>(null);
  readonly problem = signal<Problem | null>(null);
  /** The rows are those of an earlier question. */
  readonly stale = signal(true);
  readonly loaded = signal(false);

  private readonly holds = new Set<string>();
  private connect: Connect | null = null;
  private stop: Stop = () => {};
  /** Somebody wants to see the next rows that come, also if the list is held. */
  private adopt = true;
  /** The list as it is by now, while what is shown is held; `unseen` of its rows are not shown. */
  private later: { rows: readonly RunView[]; more: boolean; unseen: number } | null = null;
  /** What was told of shown runs and is not drawn yet, and how many there are that are not shown. */
  private told: { runs: Map<string, RunView>; unseen: number | null } = { runs: new Map(), unseen: null };
  private readonly pace = new DrawPace(DRAW_EVERY_MS);
  private drawTimer: ReturnType<typeof setTimeout> | undefined;
  private joinedAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly clock: () => number = Date.now) {}

  get held(): boolean {
    return this.holds.size > 0;
  }

  /** Another question. What was there stays until it is answered. */
  open(connect: Connect): void {
    this.close();
    this.connect = connect;
    this.stale.value = true;
    this.adopt = true;
    this.later = null;
    this.begin();
  }

  close(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.forget();
    this.stop();
    this.stop = () => {};
  }

  /** Why it must not move; false: that is over. */
  hold(reason: string, on: boolean): void {
    if (on) {
      this.holds.add(reason);
      return;
    }
    if (!this.holds.delete(reason) || this.held) return;
    this.draw();
    this.sweep();
    const unseen = this.unseen.peek();
    const later = this.later;
    if (later !== null) this.show(later.rows, later.more);
    if (unseen > (later?.unseen ?? 0)) this.joinSoon();
  }

  /** Shows what is new, now, whatever holds it. */
  join(): void {
    this.draw();
    const unseen = this.unseen.peek();
    const later = this.later;
    if (later !== null) this.show(later.rows, later.more);
    if (later !== null && unseen <= later.unseen) return;
    this.adopt = true;
    this.askAgain();
  }

  private askAgain(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.joinedAt = this.clock();
    this.stop();
    this.begin();
  }

  private begin(): void {
    this.stop = this.connect?.(this.listener) ?? (() => {});
  }

  private readonly listener: RunsListener = {
    rows: (rows, more) => this.take(rows, more),
    row: (run) => {
      this.told.runs.set(run.run_id, run);
      this.drawSoon();
    },
    gone: (id) => {
      this.told.runs.delete(id);
      this.lose(id);
    },
    new: (count) => {
      this.told.unseen = count;
      this.drawSoon();
      if (count > 0 && !this.held) this.joinSoon();
    },
    stats: (counts) => {
      this.counts.value = counts;
    },
    problem: (problem) => {
      this.problem.value = problem;
    },
  };

  private drawSoon(): void {
    if (this.drawTimer !== undefined) return;
    const wait = this.pace.waitMs(this.clock());
    if (wait === 0) this.draw();
    else this.drawTimer = setTimeout(() => this.draw(), wait);
  }

  private draw(): void {
    const { runs, unseen } = this.told;
    if (runs.size === 0 && unseen === null) return;
    this.forget();
    this.pace.drawn(this.clock());
    batch(() => {
      for (const run of runs.values()) this.patch(run);
      if (unseen !== null) this.unseen.value = unseen + (this.later?.unseen ?? 0);
    });
  }

  private forget(): void {
    clearTimeout(this.drawTimer);
    this.drawTimer = undefined;
    this.told = { runs: new Map(), unseen: null };
  }

  /** All of it: newer than what was told of its parts. */
  private take(rows: readonly RunView[], more: boolean): void {
    this.forget();
    this.problem.value = null;
    if (this.adopt || !this.held) this.show(rows, more);
    else this.keep(rows, more);
  }

  /** The list is held: rows are patched where they are. */
  private keep(rows: readonly RunView[], more: boolean): void {
    batch(() => {
      const now = new Map(rows.map((run) => [run.run_id, run]));
      const last = rows.at(-1);
      let shown = 0;
      for (const row of this.rows.peek()) {
        const run = now.get(row.id);
        if (run !== undefined) {
          shown += 1;
          this.patch(run);
        } else if (!more || last === undefined || isBefore(last, row.run.peek())) row.gone.value = true;
      }
      this.unseen.value = rows.length - shown;
      this.later = { rows, more, unseen: rows.length - shown };
    });
  }

  private show(rows: readonly RunView[], more: boolean): void {
    batch(() => {
      const known = new Map(this.rows.peek().map((row) => [row.id, row]));
      const shown = rows.map((run) => {
        const row = known.get(run.run_id);
        if (row === undefined) return { id: run.run_id, run: signal(run), gone: signal(false) };
        row.gone.value = false;
        update(row, run);
        return row;
      });
      if (!isSame(shown, this.rows.peek())) this.rows.value = shown;
      this.more.value = more;
      this.unseen.value = 0;
      this.stale.value = false;
      this.loaded.value = true;
    });
    this.adopt = false;
    this.later = null;
  }

  private patch(run: RunView): void {
    if (this.later !== null) {
      const rows = this.later.rows.map((each) => (each.run_id === run.run_id ? run : each));
      this.later = { ...this.later, rows };
    }
    const row = this.rows.peek().find((each) => each.id === run.run_id);
    if (row === undefined) return;
    row.gone.value = false;
    update(row, run);
  }

  private lose(id: string): void {
    if (this.later !== null) this.later = { ...this.later, rows: this.later.rows.filter((each) => each.run_id !== id) };
    const rows = this.rows.peek();
    if (!this.held) this.rows.value = rows.filter((each) => each.id !== id);
    else {
      const row = rows.find((each) => each.id === id);
      if (row) row.gone.value = true;
    }
  }

  private sweep(): void {
    const rows = this.rows.peek();
    const left = rows.filter((row) => !row.gone.peek());
    if (left.length < rows.length) this.rows.value = left;
  }

  private joinSoon(): void {
    if (this.timer !== undefined) return;
    const wait = Math.max(0, this.joinedAt + JOIN_MS - this.clock());
    this.timer = setTimeout(() => {
      this.timer = undefined;
      // Not adopted: who has put the pointer on the list until the answer comes has it under the pointer.
      if (!this.held) this.askAgain();
    }, wait);
  }
}

/** In the order of the list, which shows the newest first. */
function isBefore(last: RunView, run: RunView): boolean {
  return run.created_at > last.created_at;
}

function update(row: RunRow, run: RunView): void {
  if (JSON.stringify(row.run.peek()) !== JSON.stringify(run)) row.run.value = run;
}

function isSame(a: readonly RunRow[], b: readonly RunRow[]): boolean {
  return a.length === b.length && a.every((row, at) => row === b[at]);
}

// --- where lists come from -------------------------------------------------------------------------------------------

export type Pairs = readonly (readonly [string, string])[];

/** The first page, as it changes. */
export function firstPage(query: Pairs): Connect {
  return (on) => watchRuns(query, on);
}

/** A later page: asked for every few seconds. The counts of the namespace are asked for as well. */
export function laterPage(query: Pairs, token: string, onTokens: (tokens: PageTokens) => void): Connect {
  return (on) => {
    const stops = [
      asking(ASK_S, async () => {
        try {
          const page = await api.get<Paged<RunView>>("/runs", [...query, ["size", String(PAGE_ROWS)], ["token", token]]);
          onTokens({ next: page.next, prev: page.prev });
          on.rows(page.rows, page.next !== null);
        } catch (error) {
          on.problem?.(asProblem(error));
        }
      }),
      asking(ASK_S, async () => on.stats((await api.get<LiveListView>("/runs/events", query)).stats)),
    ];
    return () => stops.forEach((stop) => stop());
  };
}

/** The token of the second page, after the rows that are the first ones now. */
export async function tokenOfSecondPage(query: Pairs): Promise<string | null> {
  return (await api.get<Paged<RunView>>("/runs", [...query, ["size", String(PAGE_ROWS)]])).next;
}
