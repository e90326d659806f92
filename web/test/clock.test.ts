import assert from "node:assert/strict";
import { test, mock } from "node:test";
import { effect } from "@preact/signals";
import { learnTime, now, serverNow, skewMs } from "../src/state/clock";

test("the server's clock is learnt from the middle of the request", () => {
  learnTime(1_005_100, 1_000_000, 1_000_200);
  assert.equal(skewMs.value, 5000);
  assert.ok(Math.abs(serverNow() - Date.now() - 5000) < 50);
});

test("a slow answer changes nothing that it cannot know better", () => {
  learnTime(1_005_000, 1_000_000, 1_000_000);
  assert.equal(skewMs.value, 5000);
  learnTime(2_007_000, 2_000_000, 2_008_000);
  assert.equal(skewMs.value, 5000, "3 s ahead, but up to 4 s of that may have been the way");
});

test("the clock goes while somebody looks at it, and not otherwise", () => {
  mock.timers.enable({ apis: ["setInterval", "Date"], now: 10_000 });
  skewMs.value = 0;
  const seen: number[] = [];
  const stop = effect(() => void seen.push(now.value));
  for (let part = 0; part < 10; part += 1) mock.timers.tick(100);
  stop();
  const ticks = seen.length;
  mock.timers.tick(1000);
  mock.timers.reset();
  assert.ok(ticks >= 4 && ticks <= 6, `${ticks} in a second`);
  assert.equal(seen.length, ticks);
});
