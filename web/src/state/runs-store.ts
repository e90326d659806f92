import { batch, computed, signal, type Signal } from "@preact/signals";
import type { RunsListener, Stop } from "../api/live";
import type { Problem } from "../api/problem";
import type { CountsView, RunView } from "../api/types";
import { DrawPace } from "./draw-pace";

/** A run of the list. The object stays the same while the run changes, so that only its row is drawn. */
export interface RunRow {
  readonly id: string;
  readonly run: Signal<RunView>;
  /** It is no longer in the list, but stays in place while the list is held. */
  readonly gone: Signal<boolean>;
}

export interface PageTokens {
  readonly next: string | null;
  readonly prev: string | null;
}

export type Connect = (on: RunsListener) => Stop;

/** The minimum time between reloads of the list because of new runs. */
const JOIN_MS = 1000;
const DRAW_EVERY_MS = 500;
export const PAGE_ROWS = 51;

/** A list that is kept up to date while it is in use: rows are patched in place, and nothing moves while it is held
 * (something in it is hovered, focused or selected). New runs are then counted, and shown when it is released. */
export class RunsStore {
  readonly rows = signal<readonly RunRow[]>([]);
  readonly empty = computed(() => this.rows.value.length === 0);
  /** Whether all rows have the same value, so that a column tells nothing. */
  readonly oneAttempt = computed(() => this.isUniform((run) => run.attempt));
  readonly oneVersion = computed(() => this.isUniform((run) => run.version));
  /** How many runs are not shown. */
  readonly unseen = signal(0);
  readonly more = signal(false);
  readonly counts = signal<CountsView | null>(null);
  readonly problem = signal<Problem | null>(null);
  /** The rows belong to an earlier filter. */
  readonly stale = signal(true);
  readonly loaded = signal(false);

  private readonly holds = new Set<string>();
  private connect: Connect | null = null;
  private stop: Stop = () => {};
  /** The user wants to see the next rows, even if the list is held. */
  private adopt = true;
  /** The current list, while an older one is held on the screen; `unseen` of its rows are not shown. */
  private later: { rows: readonly RunView[]; more: boolean; unseen: number } | null = null;
  /** Updates of shown runs that are not drawn yet, and how many runs are not shown. */
  private told: { runs: Map<string, RunView>; unseen: number | null } = { runs: new Map(), unseen: null };
  private readonly pace = new DrawPace(DRAW_EVERY_MS);
  private drawTimer: ReturnType<typeof setTimeout> | undefined;
  private joinedAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly clock: () => number = Date.now) {}

  private isUniform(valueOf: (run: RunView) => unknown): boolean {
    return new Set(this.rows.value.map((row) => valueOf(row.run.value))).size < 2;
  }

  get held(): boolean {
    return this.holds.size > 0;
  }

  /** Opens another list. The old rows stay until it is loaded. */
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

  /** Sets or clears a reason why the list must not move. */
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

  /** Shows new runs at once, even if the list is held. */
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

  /** Takes a whole page, which is newer than pending updates of its rows. */
  private take(rows: readonly RunView[], more: boolean): void {
    this.forget();
    this.problem.value = null;
    if (this.adopt || !this.held) this.show(rows, more);
    else this.keep(rows, more);
  }

  /** The list is held: patches rows in place. */
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
      // Not adopted: if the pointer is over the list when the response arrives, the list is held.
      if (!this.held) this.askAgain();
    }, wait);
  }
}

/** In the order of the list, newest first. */
function isBefore(last: RunView, run: RunView): boolean {
  return run.created_at > last.created_at;
}

function update(row: RunRow, run: RunView): void {
  if (JSON.stringify(row.run.peek()) !== JSON.stringify(run)) row.run.value = run;
}

function isSame(a: readonly RunRow[], b: readonly RunRow[]): boolean {
  return a.length === b.length && a.every((row, at) => row === b[at]);
}
