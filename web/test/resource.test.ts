import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../src/api/problem";
import { Loader } from "../src/state/resource";

interface Held {
  readonly value: string | null;
  readonly error: Problem | null;
  readonly loading: boolean;
  readonly stale: boolean;
}

function holder(): { held: () => Held; set: (change: (was: Held) => Held) => void; changes: () => number } {
  let held: Held = { value: null, error: null, loading: true, stale: false };
  let changes = 0;
  return {
    held: () => held,
    set: (change) => {
      const next = change(held);
      if (next !== held) changes += 1;
      held = next;
    },
    changes: () => changes,
  };
}

test("what was there stays while the next is loaded, and after an error", async () => {
  const { held, set } = holder();
  await new Loader(async () => "first", set).ask();
  assert.deepEqual(held(), { value: "first", error: null, loading: false, stale: false });
  const failing = new Loader<string>(async () => Promise.reject(new Problem({ status: 500, title: "Broken" })), set);
  assert.deepEqual(held(), { value: "first", error: null, loading: true, stale: true });
  await failing.ask();
  assert.equal(held().value, "first");
  assert.equal(held().error?.title, "Broken");
  assert.equal(held().stale, true);
});

test("an answer to a question that is not asked any more is dropped", async () => {
  const { held, set } = holder();
  let answer = (_text: string): void => {};
  const slow = new Loader<string>(() => new Promise((resolve) => (answer = resolve)), set);
  const asked = slow.ask();
  slow.stop();
  await new Loader(async () => "new", set).ask();
  answer("old");
  await asked;
  assert.equal(held().value, "new");
});

test("of two answers the one that was asked for last counts", async () => {
  const { held, set } = holder();
  const answers: ((text: string) => void)[] = [];
  const loader = new Loader<string>(() => new Promise((resolve) => answers.push(resolve)), set);
  const [first, second] = [loader.ask(), loader.ask()];
  answers[1]?.("second");
  answers[0]?.("first");
  await Promise.all([first, second]);
  assert.equal(held().value, "second");
});

test("the same answer renders nothing", async () => {
  const { set, changes } = holder();
  const loader = new Loader(async () => "same", set);
  await loader.ask();
  const before = changes();
  await loader.ask();
  assert.equal(changes(), before);
});
