// The stream of a run and its timeline say the same: recorded from a server, a run with retries, a sleep, a signal, a
// patch, a child, a map, a race and a step that failed.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventView, TimelineStepView } from "../src/api/types";
import { applyEvent, needsColumns } from "../src/state/run-events";
import recorded from "./recorded-run.json";

const events = recorded.events as unknown as readonly EventView[];
const rows = recorded.rows as unknown as readonly TimelineStepView[];

/** What only a page knows. A loser of a race is given up without an event of its own. */
function told(row: TimelineStepView): object {
  const { worker_id, parallel_group, parent_step_id, ...columns } = row;
  const attempts = row.attempts.map(({ started_at, finished_at }) => ({ started_at, finished_at }));
  const rest = { ...columns, attempts };
  if (rest.status !== "abandoned") return rest;
  return { ...rest, status: "running", seq: 0, finished_at: null };
}

function applied(known: Map<string, TimelineStepView>, list: readonly EventView[]): Map<string, TimelineStepView> {
  for (const event of list) {
    const row = applyEvent(known.get(event.step ?? ""), event);
    if (row !== null) known.set(row.step_id, row);
  }
  return known;
}

test("all events from the start give the rows of the timeline", () => {
  const made = applied(new Map(), events);
  for (const row of rows) assert.deepEqual(told(made.get(row.step_id) as TimelineStepView), told(row), row.step_id);
  assert.equal(made.size, rows.length);
});

test("events that a page already knows change nothing", () => {
  for (const row of rows) {
    for (const event of events.filter((each) => each.step === row.step_id)) assert.equal(applyEvent(row, event), row);
  }
});

test("going on after any event is the same as having seen them all", () => {
  const whole = applied(new Map(), events);
  for (let cut = 0; cut <= events.length; cut += 1) {
    const first = applied(new Map(), events.slice(0, cut));
    assert.deepEqual(applied(first, events.slice(cut)), whole);
  }
});

test("a row comes back as another object only if the event changed it", () => {
  const retrying = events.find((event) => event.kind === "step_retrying") as EventView;
  const begun = applied(new Map(), events.slice(0, events.indexOf(retrying))).get(
    retrying.step ?? "",
  ) as TimelineStepView;
  const next = applyEvent(begun, retrying) as TimelineStepView;
  assert.equal(next.status, "pending");
  assert.equal(next.attempt, 2);
  assert.equal(next.retry_at, retrying.until);
  assert.equal(next.attempts.length, 1);
  assert.equal(applyEvent(next, retrying), next);
});

test("waking moves the time of what waits", () => {
  const retrying = events.findIndex((event) => event.kind === "step_retrying");
  const step = events[retrying]?.step ?? "";
  const waiting = applied(new Map(), events.slice(0, retrying + 1)).get(step) as TimelineStepView;
  const at = "2027-01-01T00:00:00.000000Z";
  const woken = applyEvent(waiting, { kind: "step_woken", run_id: "r", seq: 9_999, at, step });
  assert.equal(woken?.retry_at, at);
});

test("columns are asked for when a step begins", () => {
  assert.deepEqual([...new Set(events.filter(needsColumns).map((event) => event.kind))].sort(), [
    "child_started",
    "patched",
    "race_decided",
    "signal_awaited",
    "sleep_started",
    "step_started",
  ]);
});
