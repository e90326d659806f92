import { addressOf, api, connecting } from "./client";
import { type Problem } from "./problem";
import { pairsOf, type Query } from "./query";
import { Tabs } from "./tabs";
import type {
  CountsView,
  EventKind,
  EventsView,
  EventView,
  LiveListView,
  RowsView,
  RunView,
  StandingView,
} from "./types";
import { Watch, type Source } from "./watch";

export { type Connection } from "./connection";
export type Stop = () => void;

export const connection = connecting.state;

export function retryNow(): void {
  connecting.retryNow();
}

// --- which tab, and whether it is visible ----------------------------------------------------------------------------

const inBrowser = typeof document !== "undefined";

export function isVisible(): boolean {
  return !inBrowser || document.visibilityState === "visible";
}

const tabs = new Tabs({
  channel: inBrowser && typeof BroadcastChannel !== "undefined" ? new BroadcastChannel("kagzi-stream") : null,
  now: () => Date.now(),
  visible: isVisible,
  later: (act) => setTimeout(act, 50 + Math.random() * 200),
});

const watches = new Set<Watch>();
const shown = new Set<() => void>();

function settle(): void {
  let free = tabs.holds && isVisible();
  for (const watch of watches) {
    const wanted = !isVisible() ? "nothing" : free ? "stream" : "asking";
    if (wanted === "stream") free = false;
    watch.become(wanted);
  }
}

function onVisibility(): void {
  if (isVisible()) tabs.take();
  else tabs.leave();
  settle();
  if (isVisible()) for (const listener of [...shown]) listener();
}

if (inBrowser) {
  document.addEventListener("visibilitychange", onVisibility);
  addEventListener("focus", () => tabs.take());
  addEventListener("pagehide", () => tabs.leave());
  addEventListener("pageshow", () => tabs.take());
  setInterval(() => {
    if (isVisible()) connecting.tick();
  }, 1000);
  tabs.changed(settle);
  tabs.take();
}

function watching(source: Source): Stop {
  const watch = new Watch(source);
  watches.add(watch);
  settle();
  return () => {
    watches.delete(watch);
    watch.become("nothing");
    settle();
  };
}

// --- watching --------------------------------------------------------------------------------------------------------

export interface RunListener {
  event(event: EventView): void;
  status(standing: StandingView): void;
  end(): void;
  /** The server refuses; the request is repeated later. */
  problem?(problem: Problem): void;
}

/** The events of a run after `after`, each once and in order, until it has ended. */
export function watchRun(runId: string, after: number, on: RunListener, options: { payloads?: boolean } = {}): Stop {
  const path = `/runs/${encodeURIComponent(runId)}/events`;
  let seq = after;
  // The event of the start has the number 0, which is also the number of a watcher that knows nothing yet.
  let started = after > 0;
  let standing = "";
  let stop: Stop = () => {};
  const query = (): Query => ({ after: seq, payloads: options.payloads ?? false });
  const tell = (event: EventView): void => {
    if (event.seq < seq || (event.seq === seq && started)) return;
    seq = event.seq;
    started = true;
    on.event(event);
  };
  const tellStanding = (now: StandingView): void => {
    const text = JSON.stringify(now);
    if (text === standing) return;
    standing = text;
    on.status(now);
  };
  const end = (): void => {
    stop();
    on.end();
  };
  stop = watching({
    address: () => addressOf(path, query()),
    event(kind, data) {
      if (kind === "end") end();
      else if (kind === "run_status") tellStanding(standingOf(data as StandingView));
      else tell(data as EventView);
    },
    async ask(abort) {
      const answer = await api.get<EventsView>(path, query(), { abort });
      answer.events.forEach(tell);
      tellStanding(answer.standing);
      if (answer.ended) end();
    },
    problem: (problem) => on.problem?.(problem),
    kinds: RUN_KINDS,
  });
  return stop;
}

/** Must be complete: a browser only delivers events of kinds that are listened for. */
const RUN_EVENTS: Readonly<Record<EventKind | "run_status" | "end", true>> = {
  run_started: true,
  run_woken: true,
  run_paused: true,
  run_resumed: true,
  step_started: true,
  step_completed: true,
  step_retrying: true,
  step_lost: true,
  step_woken: true,
  step_failed: true,
  sleep_started: true,
  sleep_completed: true,
  signal_awaited: true,
  signal_received: true,
  signal_timed_out: true,
  signal_rejected: true,
  child_started: true,
  child_completed: true,
  child_failed: true,
  race_decided: true,
  patched: true,
  run_completed: true,
  run_failed: true,
  run_cancelled: true,
  run_continued: true,
  run_status: true,
  end: true,
};
const RUN_KINDS = Object.keys(RUN_EVENTS);

function standingOf(event: StandingView & { kind?: string; run_id?: string; seq?: number }): StandingView {
  const { kind: _kind, run_id: _run, seq: _seq, ...standing } = event;
  return standing;
}

export interface RunsListener {
  /** The whole first page, in its order. */
  rows(rows: readonly RunView[], more: boolean): void;
  /** A shown run in its new state. */
  row(run: RunView): void;
  gone(runId: string): void;
  /** How many runs are not shown. */
  "new"(count: number): void;
  stats(counts: CountsView): void;
  problem?(problem: Problem): void;
}

/** The first page of a list, and its changes. */
export function watchRuns(query: Query, on: RunsListener): Stop {
  const pairs = pairsOf(query);
  let last: LiveListView | null = null;
  return watching({
    address: () => addressOf("/runs/events", pairs),
    event(kind, data) {
      last = null;
      if (kind === "rows") on.rows((data as RowsView).rows, (data as RowsView).more);
      else if (kind === "row") on.row(data as RunView);
      else if (kind === "gone") on.gone((data as { run_id: string }).run_id);
      else if (kind === "new") on["new"]((data as { count: number }).count);
      else on.stats(data as CountsView);
    },
    async ask(abort) {
      const answer = await api.get<LiveListView>("/runs/events", pairs, { abort });
      if (answer === last) return;
      last = answer;
      on.rows(answer.rows, answer.more);
      on.stats(answer.stats);
    },
    problem: (problem) => on.problem?.(problem),
    kinds: ["rows", "row", "gone", "new", "stats"],
  });
}

/** Polls now, and again `seconds` after each response, while the page is visible and the server responds. Polls at once
 * when the page becomes visible or the server is back. */
export function asking(seconds: number, ask: () => Promise<void>): Stop {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let busy = false;
  let stopped = false;
  const look = async (): Promise<void> => {
    clearTimeout(timer);
    if (busy || stopped || !isVisible() || connecting.isLost) return;
    busy = true;
    try {
      await ask();
    } catch {
      // the caller handles its errors; here it only matters that the request has ended
    } finally {
      busy = false;
      clearTimeout(timer);
      if (!stopped) timer = setTimeout(() => void look(), seconds * 1000);
    }
  };
  const again = (): void => void look();
  const forget = connecting.restored(again);
  shown.add(again);
  void look();
  return () => {
    stopped = true;
    clearTimeout(timer);
    forget();
    shown.delete(again);
  };
}
