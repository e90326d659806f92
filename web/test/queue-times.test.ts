import assert from "node:assert/strict";
import { test } from "node:test";
import { haltsOf, queuedMs, queueText } from "../src/model/queue-times";

const T0 = Date.parse("2026-11-02T09:00:00Z");
const at = (ms: number): string => new Date(T0 + ms).toISOString();
const run = { ready_at: null, queued_at: null, queued: "0s", started_at: at(0) };

test("a run that got a worker at once has no wait", () => {
  assert.equal(queueText(run, T0), "");
  assert.deepEqual(haltsOf(run, []), []);
  assert.equal(queueText({ ...run, queued_at: at(-900), queued: "900ms" }, T0), "");
  assert.deepEqual(haltsOf({ ...run, queued_at: at(-900), queued: "900ms" }, []), []);
});

test("a wait before the start is named, and drawn before the pauses", () => {
  const waited = { ...run, queued_at: at(-149_000), queued: "2m 29s" };
  assert.equal(queueText(waited, T0 + 5_000), "waited 2m 29s for a worker");
  const pause = { started_at: at(10_000), finished_at: null, reason: "look" };
  assert.deepEqual(haltsOf(waited, [pause]), [
    { kind: "queue", started_at: at(-149_000), finished_at: at(0), reason: null },
    { kind: "paused", ...pause },
  ]);
});

test("the wait under way counts", () => {
  const waiting = { ...run, ready_at: at(60_000), queued: "5s" };
  assert.equal(queuedMs(waiting, T0 + 90_000), 35_000);
  assert.equal(queueText(waiting, T0 + 90_000), "waiting 35s for a worker");
  assert.equal(queuedMs(waiting, T0 + 50_000), 5_000, "a clock that is behind adds nothing");
});
