import assert from "node:assert/strict";
import { test } from "node:test";
import type { TimelineStepView } from "../src/api/types";
import { RunStore } from "../src/state/run-store";

const AT = "2026-11-16T14:00:00.000000Z";

function step(id: string, begun_seq: number, seq: number): Partial<TimelineStepView> {
  const status = seq > 0 ? "completed" : "running";
  return { step_id: id, name: id, kind: "function", status, begun_seq, seq, attempt: 1, attempts: [], created_at: AT };
}

/** From where a run is followed after its page was opened, with answers that were read at different times. */
async function followedFrom(lastSeq: number, steps: Partial<TimelineStepView>[]): Promise<string | null> {
  const answers: Record<string, unknown> = {
    "/timeline": { rows: steps, older: false, newer: false, pauses: [] },
    "/explain": { sentence: "", facts: {} },
    "": { run_id: "r1", status: "running", last_seq: lastSeq },
    "/events": { events: [], standing: { status: "running" }, ended: false },
  };
  let after: string | null = null;
  const real = globalThis.fetch;
  globalThis.fetch = async (address) => {
    const url = new URL(String(address), "http://localhost");
    const path = url.pathname.replace("/api/v1/runs/r1", "");
    if (path === "/events") after = url.searchParams.get("after");
    return new Response(JSON.stringify(answers[path]));
  };
  const store = new RunStore("r1");
  try {
    await store.open(null);
    assert.equal(store.problem.value, null);
    return after;
  } finally {
    store.close();
    globalThis.fetch = real;
  }
}

test("what happened after the steps were read and before the run was is not missed", async () => {
  assert.equal(await followedFrom(5, [step("go", 1, 2)]), "2");
  assert.equal(await followedFrom(5, []), "0");
});

test("steps that were read after the run need not be told again from the beginning", async () => {
  assert.equal(await followedFrom(2, [step("part", 3, 4), step("go", 1, 2)]), "2");
});

test("a pause is read when it is told of, and a state when it was set", async () => {
  const paused = [{ started_at: AT, finished_at: null, reason: "look first" }];
  const standing = { status: "running", state_at: AT };
  const told = { kind: "run_paused", run_id: "r1", seq: 3, at: AT };
  const answers: Record<string, unknown[]> = {
    "/timeline": [{ rows: [], older: false, newer: false, pauses: [] }, { rows: [], pauses: paused }],
    "/explain": [{ sentence: "", facts: { status: "running" } }],
    "": [
      { run_id: "r1", status: "running", last_seq: 2, state: null, state_at: null },
      { run_id: "r1", status: "running", last_seq: 3, state: { open: 2 }, state_at: AT },
    ],
    "/events": [{ events: [told], standing, ended: false, after: 3 }],
  };
  const real = globalThis.fetch;
  globalThis.fetch = async (address) => {
    const path = new URL(String(address), "http://localhost").pathname.replace("/api/v1/runs/r1", "");
    const those = answers[path] ?? [];
    return new Response(JSON.stringify(those.length > 1 ? those.shift() : those[0]));
  };
  const store = new RunStore("r1");
  try {
    await store.open(null);
    for (let turn = 0; turn < 500 && !(store.pauses.value.length && store.run.value?.state_at); turn++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.deepEqual(store.pauses.value, paused);
    assert.equal((store.run.value?.state as { text?: string } | null)?.text, '{"open":2}');
  } finally {
    store.close();
    globalThis.fetch = real;
  }
});
