// The data of the page of a run: the run, its steps and its explanation, kept up to date by its event stream.
import { signal } from "@preact/signals";
import { api } from "../api/client";
import { asking, watchRun } from "../api/live";
import type {
  EventView,
  ExplanationView,
  PauseView,
  StandingView,
  TimelineStepView,
  TimelineView,
  WholeRunView,
} from "../api/types";
import { isEnded } from "../model/statuses";
import { DrawPace } from "./draw-pace";
import { applyEvent, needsColumns } from "./run-events";
import { byBegin, idle, kept, knownSeq, moving, newestGap, tellsPause, wasReopened } from "./timeline-pages";

const FIRST_STEPS = 1_000;
const PAGE_STEPS = 2_000;
const ENDED_ASK_S = 15;
const COLUMNS_AFTER_MS = 400;
const COLUMNS_EVERY_MS = 2_000; // while steps keep beginning
const DRAW_EVERY_MS = 250;
/** A workflow may set its state twice a second. */
const STATE_AFTER_MS = 400;

export const RAW_FIELDS = ["input", "output", "context", "details", "state"] as const;

export class RunStore {
  readonly run = signal<WholeRunView | null>(null);
  readonly steps = signal<readonly TimelineStepView[]>([]);
  readonly pauses = signal<readonly PauseView[]>([]);
  readonly retries = signal<TimelineView["retries"]>([]);
  readonly explanation = signal<ExplanationView | null>(null);
  readonly problem = signal<unknown>(null);
  /** Whether all steps are loaded: until then, counts only include loaded ones. */
  readonly complete = signal(false);

  private byId = new Map<string, TimelineStepView>();
  private minBegun = Infinity;
  private columnsFrom = Infinity;
  private columnsAt = -Infinity;
  private columnsTimer: ReturnType<typeof setTimeout> | undefined;
  private stateTimer: ReturnType<typeof setTimeout> | undefined;
  private drawing = false;
  private readonly pace = new DrawPace(DRAW_EVERY_MS);
  private stops: (() => void)[] = [];
  private generation = 0;
  private explainAsked = 0;

  constructor(readonly runId: string) {}

  private get path(): string {
    return `/runs/${encodeURIComponent(this.runId)}`;
  }

  /** Loads the run, its newest steps and the selected step; then follows the run. */
  async open(selected: string | null): Promise<void> {
    const generation = ++this.generation;
    const isStale = () => generation !== this.generation;
    this.release();
    try {
      const [run, newest] = await Promise.all([
        api.get<WholeRunView>(this.path, {}, { raw: RAW_FIELDS }),
        api.get<TimelineView>(`${this.path}/timeline`, { size: String(FIRST_STEPS) }),
        this.explain(),
      ]);
      if (isStale()) return;
      this.byId = new Map();
      this.minBegun = Infinity;
      this.problem.value = null;
      this.merge(newest);
      if (selected !== null && newest.older && !this.byId.has(selected)) await this.loadAround(selected);
      if (isStale()) return;
      this.run.value = run;
      this.complete.value = !newest.older;
      this.publish();
      this.follow(run, knownSeq(newest));
      if (newest.older) void this.loadOlder(isStale);
    } catch (error) {
      if (!isStale()) this.problem.value = error;
    }
  }

  close(): void {
    this.generation++;
    this.release();
  }

  /** Loads everything again: a retry of the run changes its steps. */
  readonly reload = (): Promise<void> => this.open(null);

  /** Loads the run alone, after an action or its end. */
  async refresh(): Promise<void> {
    const generation = this.generation;
    const [run] = await Promise.all([api.get<WholeRunView>(this.path, {}, { raw: RAW_FIELDS }), this.explain()]);
    if (generation !== this.generation) return;
    const before = this.run.value;
    this.run.value = run;
    if (before !== null && wasReopened(before, run)) await this.reload();
  }

  // --- steps ---------------------------------------------------------------------------------------------------------

  private merge(page: TimelineView): void {
    this.pauses.value = kept(this.pauses.value, page.pauses);
    this.retries.value = kept(this.retries.value, page.retries);
    for (const row of page.rows) {
      const known = this.byId.get(row.step_id);
      // an event may be newer than the page
      const isOld = known !== undefined && Math.max(known.begun_seq, known.seq) > Math.max(row.begun_seq, row.seq);
      this.byId.set(row.step_id, isOld ? { ...row, ...moving(known) } : row);
    }
  }

  private async loadAround(stepId: string): Promise<void> {
    try {
      this.merge(await api.get<TimelineView>(`${this.path}/timeline`, { around: stepId, size: "200" }));
    } catch {
      // a link to a step that no longer exists still shows the run
    }
  }

  private async loadOlder(isStale: () => boolean): Promise<void> {
    let older = true;
    for (const row of this.byId.values()) this.minBegun = Math.min(this.minBegun, row.begun_seq);
    this.minBegun = newestGap(this.byId, FIRST_STEPS) ?? this.minBegun;
    while (older) {
      await idle();
      let page: TimelineView;
      try {
        page = await api.get<TimelineView>(`${this.path}/timeline`, {
          before: String(this.minBegun),
          size: String(PAGE_STEPS),
        });
      } catch (error) {
        if (!isStale()) this.problem.value = error;
        return;
      }
      if (isStale()) return;
      this.merge(page);
      this.minBegun = page.rows.at(-1)?.begun_seq ?? 0;
      older = page.older && page.rows.length > 0;
    }
    this.complete.value = true;
    this.publish();
  }

  // --- events --------------------------------------------------------------------------------------------------------

  /** `known`: the steps include all events up to this seq. The run may have been read later than the steps, so the
   * stream begins with the older of the two, or events in between would be missed. Events that are already known
   * change nothing. */
  private follow(run: WholeRunView, known: number): void {
    if (isEnded(run.status)) {
      this.stops.push(asking(ENDED_ASK_S, () => this.refresh()));
      return;
    }
    this.stops.push(
      watchRun(this.runId, Math.min(run.last_seq, known), {
        event: (event) => this.apply(event),
        status: (standing) => this.stand(standing),
        end: () => void this.ended(),
      }),
    );
  }

  private apply(event: EventView): void {
    const step = event.step;
    if (tellsPause(event)) this.askColumns(event.seq);
    if (step == null) return;
    const row = this.byId.get(step);
    const next = applyEvent(row, event);
    if (next === null || next === row) return;
    this.byId.set(step, next);
    if (needsColumns(event)) this.askColumns(event.kind === "race_decided" ? this.firstOpen(event.seq) : event.seq);
    this.draw();
  }

  private stand(standing: StandingView): void {
    const run = this.run.value;
    if (run === null) return;
    const status = standing.status;
    this.run.value = {
      ...run,
      status,
      progress: standing.progress ?? null,
      status_text: standing.status_text ?? null,
      pause_requested: standing.pause_requested ?? false,
      cancel_requested: standing.cancel_requested ?? false,
      pause_reason: standing.pause_reason ?? null,
    };
    // the explanation may be older than the status
    const said = this.explanation.value?.facts["status"] ?? status;
    if (status !== run.status || status !== said) void this.refresh().catch(() => undefined);
    else if ((standing.state_at ?? run.state_at) !== run.state_at) this.askState();
  }

  private async ended(): Promise<void> {
    this.release();
    const generation = this.generation;
    try {
      const [newest] = await Promise.all([
        api.get<TimelineView>(`${this.path}/timeline`, { size: String(FIRST_STEPS) }),
        this.refresh(),
      ]);
      if (generation !== this.generation) return;
      this.merge(newest); // open steps were abandoned with the run
      this.publish();
    } finally {
      if (generation === this.generation) this.stops.push(asking(ENDED_ASK_S, () => this.refresh()));
    }
  }

  private async explain(): Promise<void> {
    const asked = ++this.explainAsked;
    const why = await api.get<ExplanationView>(`${this.path}/explain`);
    if (asked === this.explainAsked) this.explanation.value = why;
  }

  /** Events do not name the group of a step: loads the rows of all steps that began meanwhile again. */
  private askColumns(seq: number): void {
    this.columnsFrom = Math.min(this.columnsFrom, seq);
    const wait = Math.max(COLUMNS_AFTER_MS, this.columnsAt + COLUMNS_EVERY_MS - performance.now());
    this.columnsTimer ??= setTimeout(() => void this.readColumns(), wait);
  }

  /** Watchers learn that the state was set, but not its value. */
  private askState(): void {
    const read = async () => {
      this.stateTimer = undefined;
      const fresh = await api.get<WholeRunView>(this.path, {}, { raw: RAW_FIELDS });
      const run = this.run.value;
      if (run !== null) this.run.value = { ...run, state: fresh.state, state_at: fresh.state_at };
    };
    this.stateTimer ??= setTimeout(() => void read().catch(() => undefined), STATE_AFTER_MS);
  }

  /** The losers of a race are abandoned without events of their own. */
  private firstOpen(seq: number): number {
    let first = seq;
    for (const row of this.byId.values()) {
      if (row.status === "running" || row.status === "pending") first = Math.min(first, row.begun_seq);
    }
    return first;
  }

  private async readColumns(): Promise<void> {
    const generation = this.generation;
    const after = this.columnsFrom - 1;
    this.columnsFrom = Infinity;
    this.columnsTimer = undefined;
    this.columnsAt = performance.now();
    try {
      const page = await api.get<TimelineView>(`${this.path}/timeline`, {
        after: String(after),
        size: String(PAGE_STEPS),
      });
      if (generation !== this.generation) return;
      this.merge(page);
      this.draw();
    } catch {
      // the stream continues without it; the next event asks again
    }
  }

  // --- drawing -------------------------------------------------------------------------------------------------------

  /** Draws at most once per frame, and rarely enough to keep the page usable for runs with many steps. Hidden tabs get
   * no frames, so they draw at once. */
  private draw(): void {
    if (this.drawing) return;
    this.drawing = true;
    const wait = this.pace.waitMs(performance.now());
    if (document.hidden) queueMicrotask(() => this.publish());
    else if (wait > 16) setTimeout(() => requestAnimationFrame(() => this.publish()), wait);
    else requestAnimationFrame(() => this.publish());
  }

  private publish(): void {
    const began = performance.now();
    this.drawing = false;
    this.steps.value = [...this.byId.values()].sort(byBegin);
    this.pace.drawn(performance.now());
    // signals render in a microtask: the cost is known after that
    queueMicrotask(() => queueMicrotask(() => this.pace.cost(performance.now() - began)));
  }

  private release(): void {
    for (const stop of this.stops.splice(0)) stop();
    clearTimeout(this.columnsTimer);
    clearTimeout(this.stateTimer);
    this.stateTimer = undefined;
    this.columnsTimer = undefined;
    this.columnsFrom = Infinity;
  }
}
