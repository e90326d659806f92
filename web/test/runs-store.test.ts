import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunsListener } from "../src/api/live";
import type { RunView } from "../src/api/types";
import { foldRows } from "../src/pages/runs/folding";
import { RunsStore } from "../src/state/runs-store";

let made = 0;

function run(id: string, fields: Partial<RunView> = {}): RunView {
  made += 1;
  const created_at = `2026-11-16T14:00:00.${String(made).padStart(6, "0")}Z`;
  return { run_id: id, workflow_id: id, workflow: "order", status: "running", created_at, parent_run_id: null, ...fields } as RunView;
}

/** A list whose server is the test. */
function opened(): { store: RunsStore; server: () => RunsListener; connections: () => number; tick: (ms: number) => void } {
  let listener: RunsListener | null = null;
  let connections = 0;
  let now = 0;
  const store = new RunsStore(() => now);
  store.open((on) => {
    listener = on;
    connections += 1;
    return () => {
      if (listener === on) listener = null;
    };
  });
  return {
    store,
    server: () => {
      assert.ok(listener !== null, "nobody listens");
      return listener;
    },
    connections: () => connections,
    tick: (ms) => {
      now += ms;
    },
  };
}

const ids = (store: RunsStore): string[] => store.rows.value.map((row) => row.id);

test("a row is patched in place: the list and the object of the row stay", () => {
  const { store, server } = opened();
  server().rows([run("b"), run("a")], false);
  const [rows, row] = [store.rows.value, store.rows.value[0]];
  server().row({ ...run("b"), status: "completed" });
  assert.equal(store.rows.value, rows);
  assert.equal(store.rows.value[0], row);
  assert.equal(row?.run.value.status, "completed");
});

test("what changes all the time is drawn a few times a second, as it is then", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { store, server, tick } = opened();
  server().rows([run("b"), run("a")], false);
  const row = store.rows.value[1];
  let drawn = 0;
  row?.run.subscribe(() => (drawn += 1));
  for (let attempt = 1; attempt <= 500; attempt += 1) {
    server().row({ ...run("a"), attempt });
    tick(20);
    context.mock.timers.tick(20);
  }
  assert.ok(drawn >= 20 && drawn <= 26, `${drawn} times in ten seconds`);
  context.mock.timers.tick(1000);
  assert.equal(row?.run.value.attempt, 500);
});

test("what was told before the whole list is not drawn after it", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { store, server } = opened();
  server().rows([run("a")], false);
  for (let attempt = 1; attempt <= 9; attempt += 1) server().row({ ...run("a"), attempt });
  server().new(7);
  server().rows([{ ...run("a"), status: "completed" }], false);
  context.mock.timers.tick(1000);
  assert.equal(store.rows.value[0]?.run.value.status, "completed");
  assert.equal(store.unseen.value, 0);
  store.close();
});

test("nothing moves while the list is held: new ones are counted, lost ones marked", () => {
  const { store, server, connections } = opened();
  server().rows([run("b"), run("a")], false);
  store.hold("pointer", true);
  server().new(12);
  server().gone("a");
  server().rows([run("d"), run("c"), run("b")], false);
  assert.deepEqual(ids(store), ["b", "a"]);
  assert.equal(store.unseen.value, 2);
  assert.deepEqual(store.rows.value.map((row) => row.gone.value), [false, true]);
  assert.equal(connections(), 1);
  store.hold("pointer", false);
  assert.deepEqual(ids(store), ["d", "c", "b"]);
  assert.equal(store.unseen.value, 0);
});

test("two reasons to hold are two: it moves when both are over", () => {
  const { store, server } = opened();
  server().rows([run("a")], false);
  store.hold("pointer", true);
  store.hold("selection", true);
  server().rows([run("b"), run("a")], false);
  store.hold("pointer", false);
  assert.deepEqual(ids(store), ["a"]);
  store.hold("selection", false);
  assert.deepEqual(ids(store), ["b", "a"]);
});

test("what was pushed off the end of the page has not gone", () => {
  const { store, server } = opened();
  const [a, b, c] = [run("a"), run("b"), run("c")];
  server().rows([b, a], true);
  store.hold("focus", true);
  server().rows([c, b], true);
  assert.deepEqual(store.rows.value.map((row) => row.gone.value), [false, false]);
});

test("on demand new ones join although the list is held, and it holds again then", () => {
  const { store, server, connections } = opened();
  server().rows([run("a")], false);
  store.hold("pointer", true);
  server().new(1);
  store.join();
  assert.equal(connections(), 2);
  server().rows([run("b"), run("a")], false);
  assert.deepEqual(ids(store), ["b", "a"]);
  server().rows([run("c"), run("b"), run("a")], false);
  assert.deepEqual(ids(store), ["b", "a"]);
});

test("however many come, the list is asked for once a second", async () => {
  const { store, server, connections, tick } = opened();
  server().rows([run("a")], false);
  tick(5_000);
  for (let n = 1; n <= 20; n += 1) server().new(n);
  await new Promise((done) => setTimeout(done, 5));
  assert.equal(connections(), 2);
  server().rows([run("b"), run("a")], false);
  for (let n = 1; n <= 20; n += 1) server().new(n);
  await new Promise((done) => setTimeout(done, 5));
  assert.equal(connections(), 2);
  store.close();
});

test("a list that was asked for before it was held does not move when the answer comes", async () => {
  const { store, server, connections, tick } = opened();
  server().rows([run("a")], false);
  tick(5_000);
  server().new(1);
  await new Promise((done) => setTimeout(done, 5));
  assert.equal(connections(), 2);
  store.hold("pointer", true);
  server().rows([run("b"), run("a")], false);
  assert.deepEqual([ids(store), store.unseen.value], [["a"], 1]);
  server().new(2);
  assert.equal(store.unseen.value, 3);
  server().row({ ...run("b"), status: "failed" });
  store.hold("pointer", false);
  assert.deepEqual(ids(store), ["b", "a"]);
  assert.equal(store.rows.value[0]?.run.value.status, "failed");
  store.close();
});

test("another question: what was there stays until it is answered", () => {
  const { store, server } = opened();
  server().rows([run("a")], false);
  let on: RunsListener | null = null;
  store.open((listener) => {
    on = listener;
    return () => {};
  });
  assert.deepEqual([ids(store), store.stale.value], [["a"], true]);
  (on as RunsListener | null)?.rows([run("x")], false);
  assert.deepEqual([ids(store), store.stale.value], [["x"], false]);
});

test("children are folded under their parent, or together if it is not in the list", () => {
  const { store, server } = opened();
  const strangers = ["s1", "s2", "s3"].map((id) => run(id, { parent_run_id: "elsewhere" }));
  const lone = run("lone", { parent_run_id: "far" });
  server().rows([run("c2", { parent_run_id: "p" }), ...strangers, lone, run("c1", { parent_run_id: "p" }), run("p")], false);
  const shown = (open: string[]): string[] => foldRows(store.rows.value, new Set(open)).map((line) => line.key);
  assert.deepEqual(shown([]), ["group elsewhere", "lone", "p"]);
  assert.deepEqual(shown(["p"]), ["group elsewhere", "lone", "p", "c2", "c1"]);
  assert.deepEqual(shown(["elsewhere"]), ["group elsewhere", "s1", "s2", "s3", "lone", "p"]);
});
